package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/keys"
)

// setup is what the command line asks for.
type setup struct {
	provider string
	where    string
	stdin    bool
	remove   bool
	list     bool

	home string
	keys *keys.Store
	out  io.Writer
	errs io.Writer
	json bool
}

func setupCommand() *cobra.Command {
	s := &setup{}
	cmd := &cobra.Command{Use: "setup", Short: "Keep the key of a model provider, in the system's keyring or a private file",
		Long: "Keep the key of a model provider where every launch finds it. On a terminal it asks for the provider and, unseen, for the key.\n" +
			"Elsewhere: --provider NAME --key-stdin reads the key from the standard input.\n\n" +
			"The key goes into the system's keyring, and where there is none into keys.json in the state directory, which only you may read;\n" +
			"it says which. A key never belongs on a command line: other users and the shell's history would see it.\n" +
			"OPENAI_API_KEY and ANTHROPIC_API_KEY of the environment go before what is kept.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 { // it may be a key: it is not repeated
				return usageError{errors.New("it takes no arguments; a key is typed when asked for, or comes through --key-stdin")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) }}
	f := cmd.Flags()
	f.StringVar(&s.provider, "provider", "", strings.Join(keys.Providers(), " or "))
	f.StringVar(&s.where, "store", "auto", "where: auto, keyring or file")
	f.BoolVar(&s.stdin, "key-stdin", false, "read the key from the standard input")
	f.BoolVar(&s.remove, "remove", false, "forget the key of the provider")
	f.BoolVar(&s.list, "list", false, "list the keys that are kept and where they are, never their values")
	jsonFlag(cmd)
	return cmd
}

func (s *setup) run(cmd *cobra.Command) (err error) {
	if s.home, err = homeDir(); err != nil {
		return err
	}
	s.keys, s.out, s.errs = openKeys(s.home), cmd.OutOrStdout(), cmd.ErrOrStderr()
	s.json, _ = cmd.Flags().GetBool("json") // absent means false
	if s.provider = strings.ToLower(s.provider); s.provider != "" && keys.Variables[s.provider] == "" {
		return usageError{fmt.Errorf("--provider is %s", strings.Join(keys.Providers(), " or "))} // what was given may be a key
	}
	switch s.where {
	case "auto":
		s.where = ""
	case keys.InKeyring, keys.InFile:
	default:
		return usageError{errors.New("--store is auto, keyring or file")}
	}
	switch {
	case s.list:
		return s.showList()
	case s.remove:
		return s.forget()
	}
	return s.keep()
}

func (s *setup) showList() error {
	list, err := s.keys.List()
	if err != nil {
		return err
	}
	c := &cli{out: s.out, errs: s.errs, json: s.json, home: s.home}
	c.none(len(list), "keys")
	return c.show(map[string]any{"keys": list}, func(w io.Writer) {
		for _, e := range list {
			_, _ = fmt.Fprintf(w, "%s\t%s%s\n", e.Provider, s.place(e.Where), s.overruled(e.Provider))
		}
	})
}

// overruled says that the environment goes first.
func (s *setup) overruled(provider string) string {
	if v := keys.Variables[provider]; strings.TrimSpace(os.Getenv(v)) != "" {
		return " (here " + v + " goes before it)"
	}
	return ""
}

// place says where a key is.
func (s *setup) place(where string) string {
	if where == keys.InKeyring {
		return "in the system's keyring"
	}
	return "in the private file " + keys.Path(s.home)
}

func (s *setup) forget() error {
	if s.provider == "" {
		return usageError{errors.New("--remove needs --provider")}
	}
	gone, err := s.keys.Remove(s.provider)
	if err != nil {
		return err
	}
	if !gone {
		return fmt.Errorf("no key of %s is kept", s.provider)
	}
	_, err = fmt.Fprintf(s.out, "The key of %s is removed.\n", s.provider)
	return err
}

func (s *setup) keep() error {
	terminal := isTerminal(os.Stdin)
	if !s.stdin && !terminal {
		return usageError{errors.New("the standard input is no terminal; pass --provider and --key-stdin")}
	}
	if s.stdin && s.provider == "" {
		return usageError{errors.New("--key-stdin needs --provider")}
	}
	in := bufio.NewReader(io.LimitReader(os.Stdin, 64<<10))
	if s.provider == "" {
		if err := s.askProvider(in); err != nil {
			return err
		}
	}
	var key string
	read := func() error {
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.New("the key could not be read")
		}
		key = strings.TrimSpace(line)
		return nil
	}
	if terminal && !s.stdin {
		_, _ = fmt.Fprintf(s.errs, "Key of %s (it is not shown): ", s.provider)
		err := silently(os.Stdin, read)
		_, _ = fmt.Fprintln(s.errs)
		if err != nil {
			return err
		}
	} else if err := read(); err != nil {
		return err
	}
	return s.store(key)
}

func (s *setup) askProvider(in *bufio.Reader) error {
	names := keys.Providers()
	_, _ = fmt.Fprintf(s.errs, "Provider (%s): ", strings.Join(names, ", "))
	line, err := in.ReadString('\n')
	if err != nil {
		return errors.New("no provider was named; nothing was changed")
	}
	s.provider = strings.ToLower(strings.TrimSpace(line))
	if keys.Variables[s.provider] == "" {
		return fmt.Errorf("known providers are %s; nothing was changed", strings.Join(names, " and "))
	}
	return nil
}

func (s *setup) store(key string) error {
	if err := keys.Check(key); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	where, why, err := s.keys.Set(s.provider, key, s.where)
	if err != nil {
		return errors.New(secretsOf("").mask.Text(strings.ReplaceAll(err.Error(), key, "")))
	}
	if why != nil {
		_, _ = fmt.Fprintf(s.errs, "holdfast: the system's keyring cannot be used (%s)\n", line(strings.ReplaceAll(why.Error(), key, ""), 200))
	}
	_, err = fmt.Fprintf(s.out, "The key of %s is kept %s%s. Editors and 'holdfast work' find it from their next launch on.\n", s.provider, s.place(where), s.overruled(s.provider))
	return err
}
