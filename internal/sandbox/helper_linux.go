package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// udpABI is the first version of Landlock that knows UDP.
const udpABI = 10

// notStarted is the exit code of a helper that could not confine the command, as programs that start others have it.
const notStarted = 126

// Main is the helper. It returns false when the arguments are not for it, and never returns otherwise.
func Main(args []string) bool {
	if len(args) < 4 || args[1] != hiddenName {
		return false
	}
	err := become(args[2], args[3:])
	fmt.Fprintf(os.Stderr, "holdfast: the command was not started: %v\n", err)
	os.Exit(notStarted)
	return true
}

// become confines this process and makes it the command.
func become(spec string, argv []string) error {
	var s Spec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return fmt.Errorf("read what it is confined to: %w", err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if s.Own { // its loopback is down at first
		if err := enterNetwork(); err != nil {
			return err
		}
	}
	if err := restrict(s); err != nil {
		return err
	}
	return unix.Exec(path, argv, os.Environ())
}

// devices that any program may write.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"}

// machineFacts are what may be read below /proc when the rest is hidden: the environment of other processes lies there.
var machineFacts = []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/filesystems",
	"/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/cap_last_cap", "/proc/sys/kernel/random/uuid"}

func restrict(s Spec) error {
	abi, err := llsys.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return errors.Join(ErrNone, err)
	}
	hidden := s.Hidden
	var facts []string
	if !s.Own { // in a namespace of its own the kernel keeps other processes apart
		hidden, facts = append(hidden, "/proc"), machineFacts
	}
	dirs, files := readable(hidden)
	files = append(files, facts...)
	rules := []landlock.Rule{
		landlock.RODirs(dirs...).IgnoreIfMissing(), landlock.ROFiles(files...).IgnoreIfMissing(),
		landlock.RWDirs(s.Writable...).IgnoreIfMissing().WithRefer(),
		landlock.RWFiles(devices...).IgnoreIfMissing().WithIoctlDev(), landlock.RWDirs("/dev/pts").IgnoreIfMissing().WithIoctlDev(),
	}
	config := landlock.V7
	if abi >= udpABI {
		config = landlock.V10
	}
	config = config.BestEffort()
	if err := config.RestrictPaths(rules...); err != nil {
		return fmt.Errorf("close the files: %w", err)
	}
	if !s.Network && !s.Own {
		if err := config.RestrictNet(); err != nil {
			return fmt.Errorf("close the network: %w", err)
		}
	}
	if err := config.RestrictScoped(); err != nil {
		return fmt.Errorf("close the way to other processes: %w", err)
	}
	return nil
}
