//go:build !unix

package instructions

const nonblock = 0
