// Command holdfast is a coding agent that editors launch over stdio. This package only wires the others together: flags, exit codes,
// and the order in which things start and end.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"holdfast/internal/proc"
	_ "holdfast/internal/proc/early"    // a supervisor starts before everything else is initialised,
	_ "holdfast/internal/sandbox/early" // and so does what confines a command
	"holdfast/internal/store"
)

// version is set by the release build.
var version = "0.1.0-dev"

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // it says why
	exitUsage  = 2
)

func main() {
	if proc.Main(os.Args) { // a supervisor is this binary under a hidden name; it must start nothing else
		return
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	root := rootCommand()
	asked := strictHelp(root)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		err = asked()
	}
	var u usageError
	var exit exitError
	var open *store.OpenError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &u):
		fmt.Fprintf(os.Stderr, "holdfast: %v\nRun '%s --help' for what there is.\n", err, cmd.CommandPath())
		return exitUsage
	case errors.As(err, &open):
		fmt.Fprintf(os.Stderr, "holdfast: %s: %s\n%s\n", open.Code, open.Message, open.Action)
		return exitFailed
	}
	home, _ := homeDir() // without one, shapes are masked all the same
	fmt.Fprintf(os.Stderr, "holdfast: %s\n", secretsOf(home).mask.Text(fmt.Sprint(plainly(err))))
	return exitFailed
}

func rootCommand() *cobra.Command {
	var model string
	var signIn bool // the terminal sign-in of ACP appends its argument to the launch line, whichever that is
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "A coding agent whose work survives the process",
		Long: "Holdfast is a coding agent that code editors launch over stdio (ACP). Sessions and goals live in a store on this machine:\n" +
			"kill it, close the editor, and the next launch goes on where it was.\n\n" +
			"Without a command it prints this on a terminal; where the input is a pipe it is 'holdfast acp', the server that editors launch.",
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2, Version: version,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Name() == "version" || cmd.Name() == "help" {
				return nil
			}
			return unsupported()
		},
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if signIn {
				return (&setup{where: "auto"}).run(cmd)
			}
			if isTerminal(os.Stdin) {
				return cmd.Help()
			}
			return serveACP(model)
		},
	}
	root.PersistentFlags().StringVar(&model, "model", os.Getenv("HOLDFAST_MODEL"), "model as PROVIDER/NAME (openai/NAME, anthropic/NAME, scripted/FILE)")
	root.PersistentFlags().BoolVar(&signIn, "setup", false, "ask for the key of a model provider and end, as 'holdfast setup' does")
	_ = root.PersistentFlags().MarkHidden("setup") // never fails for a flag that is there
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("holdfast {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		recording.flags(&cobra.Command{Use: "acp", Short: "Serve an editor over stdin and stdout", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if signIn {
					return (&setup{where: "auto"}).run(cmd)
				}
				return serveACP(model)
			}}),
		mcpCommand(&model),
		&cobra.Command{Use: "demo", Short: "Show a goal that survives kill -9, in a temporary repository", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if !cmd.Flags().Changed("model") {
					model = "" // HOLDFAST_MODEL alone must not make a demonstration cost money
				}
				return demo(cmd.Context(), model)
			}},
		demoServerCommand(),
		recording.flags(workCommand(&model)), goalsCommand(), sessionsCommand(), rulesCommand(), configCommand(), trustCommand(), effectsCommand(), psCommand(), stopCommand(), doctorCommand(&model),
		modelsCommand(&model), setupCommand(), upgradeCommand(), versionCommand(),
	)
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{err}
	}
	return nil
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && st.Mode()&os.ModeDevice != 0 && f.Name() != os.DevNull && !isNull(st)
}

// isNull tells /dev/null, which is a character device too and means "no terminal".
func isNull(st os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(st, null)
}
