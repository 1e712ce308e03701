package store

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// networkFS names the file systems, by the magic number of statfs, that live on another machine or behind a process.
var networkFS = map[int64]string{
	0x00006969: "NFS",
	0x0000517b: "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x01021997: "9p",
	0x65735546: "FUSE",
	0x0000564c: "NCP",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x786f4256: "VirtualBox shared folder",
	0xbacbacbc: "VMware shared folder",
}

// remoteFS returns the name of the file system of path when it must not hold a store, else "".
func remoteFS(path string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return "", fmt.Errorf("statfs: %w", err)
	}
	return networkFS[int64(uint32(s.Type))], nil //nolint:unconvert // the width of Type differs between architectures
}

// freeBytes returns what an ordinary user may still write on the file system of path, 0 when unknown.
func freeBytes(path string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}

// allocate gives f real blocks, so that they are there when the disk is full.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fill(f, size)
	}
	return err
}

// lockHolders lists the other processes that hold a flock on f, as far as the kernel shows them.
func lockHolders(f *os.File) []int {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	inode := ":" + strconv.FormatUint(fileID(info).inode, 10)
	table, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer func() { _ = table.Close() }()
	var pids []int
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// "7: FLOCK  ADVISORY  READ 4711 fe:00:1234 0 EOF"; waiters carry "->" in the second field.
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
