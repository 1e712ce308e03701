package main

import "context"

func demo(context.Context, string) error { return nil }
