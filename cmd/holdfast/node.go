package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"holdfast/goals"
	"holdfast/internal/config"
	"holdfast/internal/ident"
	"holdfast/internal/instance"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/tools"
	"holdfast/internal/worktree"
	"holdfast/mcp/client"
	"holdfast/mcp/toolbox"
	"holdfast/recovery"
	"holdfast/session"
)

// node is one Holdfast process on the store: the opened store, the lock that proves it lives, and the engine. close ends it in order.
type node struct {
	home   string
	db     *store.DB
	inst   *instance.Instance
	engine *session.Engine
	goals  *goals.Service
	box    *toolbox.Box // MCP servers; nil in a process that executes nothing
	log    zerolog.Logger
	model  func() (session.Model, error)
	// projects answers what directories bring along; nil in a process that executes nothing.
	projects *projects

	life   context.Context // of what runs beside the work; ends with close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	guard  sync.WaitGroup // of the goroutine that retires it
	outed  chan struct{}  // closed once it has retired: a newer program forbids it to write
	graves sync.Mutex     // held while a dead one's lock is ours: whoever asks whether it lives would find it held
	taking atomic.Bool    // recovery was admitted: work that nobody owns is taken from now on
}

// Kinds of instances. The first two execute; the others only write controls.
const (
	kindACP  = "acp"
	kindWork = "work"
	kindMCP  = "mcp"
	kindCLI  = "cli"
)

func executes(kind string) bool { return kind == kindACP || kind == kindWork }

// openNode opens everything a process on the store needs.
// onBusy hears of a process that has kept the store for seconds.
func openNode(ctx context.Context, home, kind, model string, log zerolog.Logger, onBusy ...func(pid int, since time.Time)) (*node, error) {
	newID := func() string { return uuid.Must(uuid.NewV7()).String() }
	now := func() time.Time { return time.Now().UTC() }
	o := storeOptions(home)
	o.Now, o.NewID, o.Log = now, newID, log
	o.OnBusy = func(pid int, since time.Time) {
		log.Warn().Int("pid", pid).Time("since", since).Msg("a process has kept the store for seconds")
		for _, fn := range onBusy {
			fn(pid, since)
		}
	}
	db, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	n := &node{home: home, db: db, log: log, outed: make(chan struct{})}
	if err := n.start(ctx, home, kind, model, now, newID); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *node) start(ctx context.Context, home, kind, model string, now func() time.Time, newID func() string) (err error) {
	id := newID()
	if n.inst, err = instance.Start(instance.Options{Home: home, ID: id, Kind: kind, Log: n.log}); err != nil {
		return fmt.Errorf("take the instance lock: %w", err)
	}
	self := ident.Self()
	row := session.InstanceRow{ID: session.InstanceID(id), Kind: kind, Host: ident.Host(), Boot: self.Boot, Space: self.Space, PID: self.PID, Start: self.Start, StartedAt: now()}
	st := store.Store{DB: n.db}
	if err := st.Commit(ctx, "instance.joined", func(tx session.Tx) error { return tx.InsertInstance(row) }); err != nil {
		return fmt.Errorf("record this process: %w", err)
	}
	key, err := n.db.CredentialKey(ctx)
	if err != nil {
		return err
	}
	hide := secretsOf(home)
	n.model = resolver(home, model, key, hide)
	walls := confiner(home)
	c, err := settings(home) // what is wrong with it is told by the toolbox
	builtin := tools.Builtin(tools.Options{StateDir: home, Mask: hide.mask, Own: ownPlaces(), Sandbox: walls, PrivateHosts: c.Fetch.PrivateHosts,
		Debug: func(text string) { n.log.Debug().Msg(text) }, IsDetach: func(err error) bool {
			return errors.Is(err, session.ErrDetach) || errors.Is(err, session.ErrFenced)
		}})
	env := tools.CommandEnv(os.Environ(), provider.SecretEnv)
	cfg := session.Config{
		Store: st, Self: row, Tools: builtin, Confiner: walls, Model: n.model, Hooks: goals.Hooks{}, Recoverer: recovery.Runner{},
		Drivers: informed(n, drivers(st, builtin, n.model, n.prompt)), Workspace: worktree.New(home), Poke: n.inst.Poke, StateDir: home, Passive: !executes(kind),
		Mask: hide.mask, Env: env, Now: now, NewID: newID, Log: n.log,
	}
	cfg.Limits, cfg.Prices, cfg.Longest = modelLimits(home), modelPrices(home), longestAnswer(home)
	cfg.Models = newChoices(home, model, key, hide)
	cfg.Environment = tools.Stored(env, key, passedOn(c)...)
	if err == nil {
		cfg.ReviewModel = c.Goals.ReviewModel
		cfg.Stall, cfg.Auto = time.Duration(c.Recovery.Stall)*time.Second, session.Auto(c.Recovery.Auto)
		if c.Limits.Working != nil {
			cfg.Working = *c.Limits.Working
		}
	} else if config.Mentions(config.Path(home, userHome()), "recovery") {
		cfg.Auto = session.AutoOff // it may say so, and then nothing may be revived
	}
	if executes(kind) {
		n.projects = newProjects(home, st, func() *session.Engine { return n.engine })
		if cfg.Rules, err = rulebook(home, n.projects.rules); err != nil {
			n.log.Error().Err(err).Msg("the rules of the configuration cannot be used: every call asks")
			all := askAll(err)
			cfg.Rules = func(session.Session) session.Rulebook { return all }
		}
		n.box = newBox(home, toolbox.Options{Project: n.projects.servers, Key: key, Instance: row.ID, Store: st, NewID: newID, Log: n.log, Mask: hide.mask,
			Takes: func(ctx context.Context, id session.SessionID) (bool, bool, error) { return n.engine.Takes(ctx, id) },
			Resolve: func(ctx context.Context, s session.Send, out session.Output) error {
				return n.engine.Resolve(ctx, s, out)
			}})
		cfg.Toolbox = n.box
	}
	n.engine = session.NewEngine(cfg)
	n.goals = &goals.Service{Engine: n.engine}
	n.life, n.cancel = context.WithCancel(context.Background())
	n.guard.Go(func() { n.mind(n.life) })
	if !executes(kind) {
		return nil // it takes nothing over, not even from the dead
	}
	n.wg.Go(func() { n.watch(n.life, home) })
	return nil
}

// resolver finds the model once; a failure is looked at again, because the answer to it is to set something up.
func resolver(home, name string, key []byte, hide *secrets) func() (session.Model, error) {
	var mu sync.Mutex
	var found session.Model
	return func() (session.Model, error) {
		mu.Lock()
		defer mu.Unlock()
		if found != nil {
			return found, nil
		}
		c, err := modelConfig(home, name, key)
		if err != nil {
			return nil, err
		}
		m, err := provider.Resolve(c)
		if err != nil {
			return nil, err
		}
		found = recording.of(provider.Hidden(m, hide.mask))
		return found, nil
	}
}

// drivers says what each kind of run is.
func drivers(st session.Store, builtin []session.Tool, model func() (session.Model, error), prompt func(session.Session) string) map[session.RunKind]session.Driver {
	judge := func() string {
		m, err := model()
		if err != nil {
			return "unknown"
		}
		id := m.Identity()
		return id.Provider + "/" + id.Name
	}
	var readers, shell []session.Tool
	for _, t := range builtin {
		_, asks := t.(session.Asker)
		if _, state := t.(session.StateTool); !state && !asks && t.Class() == session.ReadOnly && t.Spec().Name != "shell_output" { // a review judges what is stored and the work tree
			readers = append(readers, t)
		}
		if t.Spec().Name == "shell" {
			shell = append(shell, t)
		}
	}
	with := func(more ...session.Tool) []session.Tool {
		return append(append([]session.Tool{}, builtin...), more...)
	}
	return map[session.RunKind]session.Driver{
		session.RunPrompt:       session.PromptDriver{System: prompt, Tools: with(goals.ChatTools()...)},
		session.RunGoal:         goals.Work{System: prompt, Tools: with(goals.WorkTools()...)},
		session.RunVerification: goals.Review{Store: st, Tools: append(readers, goals.ReviewTool(judge)), Code: shell},
	}
}

// fallback is how many seconds a lost doorbell may cost a process where nothing runs.
const fallback = 5

// watch passes doorbells on and takes over what dead instances owned. It wakes once a second, and reads the store only when somebody may
// have written there: every few seconds, for a control that no doorbell announced.
func (n *node) watch(ctx context.Context, home string) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var known int     // others, at the last look
	var control int64 // the newest control, at the last look
	look := func() {
		n.inst.Beat()
		n.takeHandedOver(ctx)
		n.engine.Ring()
		n.lookAfter(ctx)
		n.takeUnowned(ctx)
	}
	for seconds := 1; ; {
		select {
		case <-ctx.Done():
			return
		case <-n.inst.Bell():
			n.engine.SetShared(true) // somebody else rang,
			known = max(known, 1)    // and may be gone before the next tick
			look()
		case <-tick.C:
			seconds++
			others, err := n.inst.Others()
			if err != nil {
				n.log.Error().Err(err).Msg("listing instances failed")
				continue
			}
			n.engine.SetShared(len(others) > 0 || !n.inst.Heard())
			n.bury(ctx, home, others)
			if n.engine.HasBackgrounds() {
				n.lookAfter(ctx)
			}
			fewer := len(others) < known // one let go in order
			known = len(others)
			if known > 0 || seconds%fallback == 0 {
				n.engine.Serve() // a bell may have been lost, or whoever was next may not take its turn
			}
			if seconds%fallback == 0 {
				n.inst.Beat()
				n.buryUnlocked(ctx)
			}
			if fewer || seconds%fallback == 0 && (known > 0 || n.controlled(ctx, &control)) {
				look()
			}
		}
	}
}

// controlled tells whether a control was stored since the last look, whoever did it.
func (n *node) controlled(ctx context.Context, last *int64) bool {
	var now int64
	err := store.Store{DB: n.db}.Read(ctx, func(tx session.Tx) (err error) { now, err = tx.LastCommand(); return err })
	if err != nil {
		if ctx.Err() == nil {
			n.log.Error().Err(err).Msg("looking for controls failed")
		}
		return true
	}
	changed := now != *last
	*last = now
	return changed
}

// takeUnowned takes work that a passive instance stored, or whose owner let go of it, and returns how much it took.
func (n *node) takeUnowned(ctx context.Context) int {
	if !n.taking.Load() {
		return 0
	}
	taken, err := n.engine.TakeUnowned(ctx)
	if err != nil && ctx.Err() == nil {
		n.log.Error().Err(err).Msg("taking unowned work failed")
	}
	return taken
}

// takeHandedOver starts what another process has handed over to this one.
func (n *node) takeHandedOver(ctx context.Context) {
	if err := n.engine.TakeHandedOver(ctx); err != nil && ctx.Err() == nil {
		n.log.Error().Err(err).Msg("starting what was handed over failed")
	}
}

// bury takes over the work of every instance whose lock is free, and removes what is left of it.
func (n *node) bury(ctx context.Context, home string, others []string) {
	n.graves.Lock()
	defer n.graves.Unlock()
	for _, id := range others {
		state, claim, err := instance.Probe(home, id)
		if err != nil {
			n.log.Error().Err(err).Str("instance", id).Msg("probing an instance failed")
			continue
		}
		if state != instance.Dead {
			continue
		}
		if n.foreign(ctx, id) { // its lock is free here, and that proves nothing
			claim.Release()
			continue
		}
		if err := n.engine.TakeDead(ctx, session.InstanceID(id)); err != nil {
			n.log.Error().Err(err).Str("instance", id).Msg("taking over failed")
			claim.Release()
			continue
		}
		n.sweep(home, id)
		if err := claim.Remove(); err != nil {
			n.log.Error().Err(err).Str("instance", id).Msg("removing a dead instance's lock failed")
		}
	}
}

// dead tells whether the process of a row provably lives no more.
func (n *node) dead(id session.InstanceID) bool {
	n.graves.Lock()
	defer n.graves.Unlock()
	var row session.InstanceRow
	err := store.Store{DB: n.db}.Read(context.Background(), func(tx session.Tx) (err error) { row, err = tx.Instance(id); return err })
	return session.IsNotFound(err) || err == nil && liveness(n.home, row) == isDead
}

// lookAfter records background commands that have ended, whoever's they are, and ends those that were stopped.
func (n *node) lookAfter(ctx context.Context) {
	if err := n.engine.LookAfterBackgrounds(ctx, ""); err != nil && ctx.Err() == nil {
		n.log.Error().Err(err).Msg("looking after background commands failed")
	}
}

// sweep ends the MCP servers that a dead instance left running. Calls in them are unknown by now and are not made again.
func (n *node) sweep(home, id string) {
	path := toolbox.ChildrenFile(home, id)
	ended, err := client.Sweep(path)
	if err != nil {
		n.log.Error().Err(err).Str("instance", id).Msg("ending left-over MCP servers failed")
		return
	}
	if ended > 0 {
		n.log.Info().Int("ended", ended).Str("instance", id).Msg("ended MCP servers that a dead process had left")
	}
	_ = os.Remove(path) // a file that stays is looked at again and proves nothing by itself
}

// recover looks at every run whose owner is gone and goes on with what may go on.
func (n *node) recover(ctx context.Context, home string) {
	others, err := n.inst.Others()
	if err != nil {
		n.log.Error().Err(err).Msg("listing instances failed")
	}
	n.engine.SetShared(len(others) > 0 || !n.inst.Heard())
	n.inst.Poke(others...) // they should know that we are here
	n.bury(ctx, home, others)
	n.buryUnlocked(ctx)
	n.lookAfter(ctx)
	n.taking.Store(true)
	n.takeUnowned(ctx)
	n.engine.Admit()
	n.wg.Go(func() {
		n.prune(n.life, home)
		n.tidy(n.life, home)
		n.retain(n.life)
		if err := n.db.CheckLarge(n.life); err != nil && n.life.Err() == nil {
			n.log.Error().Err(err).Msg("checking the store failed")
		}
	})
}

// tidy finishes steps that a lost process left in the middle, and prunes recorded work trees that no record refers to. Nothing waits for it.
func (n *node) tidy(ctx context.Context, home string) {
	if err := n.engine.FinishUndo(ctx, ""); err != nil && ctx.Err() == nil {
		n.log.Error().Err(err).Msg("finishing a step that put files back failed")
	}
	err := worktree.New(home).Prune(ctx, func() (map[string]bool, error) { return n.keptTrees(ctx) })
	if err != nil && ctx.Err() == nil {
		n.log.Error().Err(err).Msg("pruning recorded work trees failed")
	}
}

// letGo is how long running work may take to be committed when the process ends.
const letGo = time.Second

// close lets go of the work, then of the store, then of the lock: nobody may take over before the last write. Work that does not let go
// in time keeps its owner in the records; then the lock's file stays, so that the next process finds a dead owner and takes over.
func (n *node) close() error {
	var errs []error
	left := true
	if n.cancel != nil {
		n.cancel()
		n.guard.Wait()
		n.wg.Wait()
	}
	if n.engine != nil {
		ctx, cancel := context.WithTimeout(context.Background(), letGo)
		defer cancel()
		err := n.engine.Close(ctx)
		if left = err == nil; errors.Is(err, session.ErrHeldUp) || errors.Is(err, session.ErrNotNow) || errors.Is(err, context.DeadlineExceeded) {
			n.log.Warn().Err(err).Msg("ending all the same; the next process goes on") // no failure: nothing that was stored is lost
			err = nil
		}
		errs = append(errs, err)
		if n.inst != nil && executes(n.inst.Kind()) {
			if others, err := n.inst.Others(); err == nil { // what was let go of is theirs now; a lost doorbell costs delay only
				n.inst.Poke(others...)
			}
		}
	}
	if n.box != nil {
		n.box.Close() // a call in flight may answer until here; its row says unknown otherwise
	}
	errs = append(errs, n.db.Close())
	if n.inst != nil && left {
		errs = append(errs, n.inst.Close())
	}
	return errors.Join(errs...)
}
