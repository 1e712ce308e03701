//go:build unix

package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/internal/fault"
	"holdfast/internal/ident"
)

// point is fault.Point; tests of this package replace it.
var point = fault.Point

// What a supervisor inherits beside its standard files. 3 + the place in exec.Cmd.ExtraFiles.
const (
	claimFD  = 3
	envFD    = 4
	binaryFD = 5
)

// Start runs a command under a supervisor of its own. After an error nothing ran and nothing will.
func Start(spec Spec) (*Handle, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(spec.Dir) // the supervisor works elsewhere
	if err != nil {
		return nil, fmt.Errorf("find the folder of a command: %w", err)
	}
	boot, err := ident.BootID()
	if err != nil {
		return nil, err
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	lock, err := claim(dir)
	if err != nil {
		return nil, err
	}
	// Our descriptor is only closed, never unlocked: the lock belongs to the open file, which the supervisor inherits.
	defer func() { _ = lock.Close() }()
	point("proc.claimed")
	if err := put(dir, "spec", spec.record(boot), true); err != nil {
		return nil, err
	}
	point("proc.spec")
	h := &Handle{dir: dir}
	if err := launch(dir, handed{spec.Env, spec.Hide}, lock); err != nil {
		_ = lock.Close()
		if s, serr := h.State(); serr == nil && s.Verdict == NotStarted {
			return nil, err
		}
		return h, nil // something was launched after all: only its files can tell
	}
	point("proc.launched")
	return h, nil
}

// claim makes the lock file of a folder. It gets its name only once it is locked (I4), and only if there is none (I5).
func claim(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "alive.*.tmp")
	if err != nil {
		return nil, fmt.Errorf("claim the command: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.Link(f.Name(), path(dir, "alive"))
	}
	if rerr := os.Remove(f.Name()); err == nil {
		err = rerr
	}
	if errors.Is(err, fs.ErrExist) {
		err = ErrUsed
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("claim the command: %w", err), f.Close())
	}
	return f, nil
}

// launch starts the supervisor through a shell that ends at once, so that the supervisor's parent is not us.
func launch(dir string, h handed, lock *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the null device: %w", err)
	}
	defer func() { _ = null.Close() }()
	vars, err := unnamed(dir, h)
	if err != nil {
		return err
	}
	defer func() { _ = vars.Close() }()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	cmd := exec.Command("/bin/sh")
	cmd.ExtraFiles = []*os.File{lock, vars}
	if runtime.GOOS == "linux" {
		// Started through a descriptor it is this very binary, also when an upgrade replaced the file or we die before it begins.
		binary, err := os.Open("/proc/self/exe")
		if err != nil {
			return fmt.Errorf("open this binary: %w", err)
		}
		defer func() { _ = binary.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, binary)
		self = fmt.Sprintf("/proc/self/fd/%d", binaryFD)
	}
	cmd.Args = []string{"sh", "-c", `"$@" &`, "sh", self, hidden, dir}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	cmd.Env = supervisorEnv()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	return nil
}

// handed is what a supervisor is given beside the spec, because it may be secret.
type handed struct {
	Env  []string `json:"env"`
	Hide []string `json:"hide,omitempty"`
}

// unnamed hands an environment over in a file that has lost its name, so that its values are never found on the disk.
func unnamed(dir string, h handed) (*os.File, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode the environment: %w", err)
	}
	f, err := os.CreateTemp(dir, "env.*.tmp")
	if err != nil {
		return nil, fmt.Errorf("hand the environment over: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(b)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hand the environment over: %w", err), f.Close())
	}
	return f, nil
}

// supervisorEnv is what a supervisor gets of our environment: nothing secret, and what a faultpoints build reads.
func supervisorEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "HOLDFAST_SUPERVISOR_CRASH") {
			env = append(env, strings.Replace(name, "_SUPERVISOR", "", 1)+"="+value)
		}
	}
	return env
}
