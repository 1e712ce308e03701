package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"holdfast/session"
	"holdfast/usage"
)

// seeds are rows as the product writes them, by the schema that first has room for them. Each runs on a store of that schema or a later one.
var seeds = map[int]string{
	1: `
INSERT INTO instances (id, kind, host, boot, pid, start_ticks, started_at) VALUES ('i1', 'acp', 'h', 'b', 7, 9, 100);
INSERT INTO sessions (id, cwd, roots, identity, title, mode, owner, generation, last_seq, created_at, updated_at) VALUES
  ('s1', '/w', '["/w"]', 'id', 'a title', 'edit', 'i1', 3, 4, 100, 200), ('s2', '/v', '["/v"]', 'id', '', 'ask', '', 0, 0, 100, 100);
INSERT INTO attachments (instance, session, attached_at) VALUES ('i1', 's1', 150);
INSERT INTO events (session, seq, kind, ref, at) VALUES ('s1', 1, 'item', 'm1', 101), ('s1', 2, 'run', 'r1', 102), ('s1', 3, 'item', 'm2', 103), ('s1', 4, 'approval', 'p1', 104);
INSERT INTO runs (id, session, kind, ord, desired, phase, input, retry_at, created_at) VALUES ('r1', 's1', 'prompt', 1, 'run', 'waiting', 'm1', 900, 101);
INSERT INTO runs (id, session, kind, ord, desired, phase, stop_reason, created_at, ended_at) VALUES ('r2', 's1', 'goal', 2, 'done', 'ended', 'end_turn', 101, 150);
INSERT INTO runs (id, session, kind, ord, desired, phase, created_at) VALUES ('r3', 's1', 'goal', 3, 'paused', 'waiting', 101);
INSERT INTO attempts (id, run, number, generation, instance, pid, state, mode, rule, continuation_key, start_point, started_at, ended_at) VALUES
  ('a1', 'r1', 1, 2, 'i0', 6, 'interrupted', 'first', 'R1', 'k1', 0, 101, 102), ('a2', 'r1', 2, 3, 'i1', 7, 'running', 'checkpoint', 'R9', 'k2', 1, 103, 0);
INSERT INTO items (id, session, seq, run, attempt, kind, state, body, created_at) VALUES ('m1', 's1', 1, 'r1', '', 'user', 'complete', '{"text":"do it"}', 101),
  ('m2', 's1', 3, 'r1', 'a2', 'tool', 'open', '{"tool":{"name":"shell"}}', 103), ('m3', 's1', 4, 'r1', 'a1', 'tool', 'complete', '{"tool":{"name":"write"}}', 102);
INSERT INTO effects (id, session, run, attempt, item, tool, version, class, args_digest, state, fact, result_digest, exit_code, settled_by, note, planned_at, dispatched_at, settled_at) VALUES
  ('e1', 's1', 'r1', 'a2', 'm2', 'shell', '1', 'unknown', 'd1', 'dispatched', 'unknown', '', NULL, 'recovery', 'lost', 103, 104, 0),
  ('e2', 's1', 'r1', 'a1', 'm3', 'write', '1', 'state_probe', 'd2', 'settled', 'completed', 'x', 0, 'probe', '', 101, 102, 105),
  ('e3', 's1', 'r1', 'a2', 'm2', 'shell', '1', 'unknown', 'd3', 'planned', '', '', NULL, '', '', 106, 0, 0);
INSERT INTO approvals (id, session, run, effect, binding, unknown, state, option, asked_at, answered_at) VALUES
  ('p1', 's1', 'r1', 'e3', 'b1', '["e1"]', 'pending', '', 106, 0), ('p2', 's1', 'r1', 'e2', 'b2', '[]', 'consumed', 'allow_once', 101, 102);
INSERT INTO commands (id, session, kind, ref, body, instance, at, consumed_at, generation) VALUES ('z', 's1', 'prompt', 'r1', '{"text":"do it"}', 'i1', 101, 102, 2),
  ('b', 's1', 'cancel', '', '{}', 'i1', 101, 0, 0), ('a', 's1', 'answer', 'p2', '{}', 'i1', 101, 0, 0);
INSERT INTO requests (id, session, run, attempt, model, state, input_tokens, output_tokens, started_at, settled_at) VALUES ('q1', 's1', 'r1', 'a1', 'm', 'settled', 10, 20, 101, 102);
INSERT INTO goals (id, session, run, objective, status, reason_code, idempotency_key, created_at, updated_at) VALUES ('g1', 's1', 'r3', 'all done', 'paused', 'user_paused', 'key', 101, 102);
INSERT INTO requirements (goal, revision, id, ord, kind, text, command, result, evidence) VALUES ('g1', 1, 'q', 1, 'command', 'it builds', 'make', 'unmet', '[{"n":1}]');`,
	2: `
INSERT INTO commands (id, session, kind, ref, instance, at) VALUES ('c', 's1', 'settle', 'e1', 'i1', 107), ('d', 's1', 'stop', '', 'i1', 108);
INSERT INTO servers (session, name, ord, command, args, env, digest, tools) VALUES ('s1', 'x', 1, 'srv', '["-a"]', '{"K":""}', 'dg', '[]');
INSERT INTO sends (id, effect, round, server, config, tool, definition, args_digest, state, reason, sent_at, ended_at) VALUES ('n1', 'e1', 1, 'x', 'c', 't', 'd', 'd1', 'unknown', 'died', 104, 105);`,
	3: `
UPDATE effects SET lookup = 'file' WHERE id = 'e1';
INSERT INTO settlements (effect, seq, fact, source, note, at) VALUES ('e1', 7, 'unknown', 'person', 'kept open', 109);`,
	4: `
INSERT INTO backgrounds (effect, session, number, command, dir, exit_code, state, started_at, ended_at) VALUES ('e2', 's1', 1, 'make', '/w', 2, 'ended', 102, 105);`,
	5: `
INSERT INTO rules (id, verdict, kind, session, cwd, tool, value, approval, created_at) VALUES ('u1', 'allow', 'prefix', 's1', '/w', 'shell', '["go","test"]', 'p2', 102);
INSERT INTO rules (id, verdict, kind, tool, created_at, revoked_at) VALUES ('u2', 'deny', 'tool', 'shell', 103, 104);
UPDATE goals SET grants = '[{"kind":"edit"}]';`,
	6: `
UPDATE attempts SET continued = 1, fingerprint = 'f' WHERE id = 'a2';
INSERT INTO effect_trees (effect, run, before, after) VALUES ('e2', 'r1', 't1', 't2');
INSERT INTO undos (id, session, number, kind, run, turn, paths, state, instance, at, settled_at) VALUES ('y1', 's1', 1, 'undo', 'r1', 1, '[]', 'settled', 'i1', 110, 111);`,
	16: `
INSERT INTO requests (id, session, run, attempt, model, state, input_tokens, output_tokens, cache_read_tokens, reasoning_tokens, started_at, settled_at)
  VALUES ('q2', 's1', 'r1', 'a1', 'm', 'settled', 100, 20, 60, 0, 103, 104);`,
	17: `
UPDATE requests SET price = '{"currency":"USD","input":3000000,"output":15000000}', reserved_input = 9, reserved_output = 8 WHERE id = 'q2';
UPDATE goals SET budget = '{}';`,
}

// firstSteps is the beginning of the product's own ladder.
func firstSteps(t *testing.T, n int) fstest.MapFS {
	t.Helper()
	names, err := fs.Glob(files, "migrations/*.sql")
	must(t, err)
	out := fstest.MapFS{}
	for _, name := range names[:n] {
		text, err := fs.ReadFile(files, name)
		must(t, err)
		out[name] = &fstest.MapFile{Data: text}
	}
	return out
}

// table is what a table holds, in order.
type table struct {
	columns []string
	rows    []string
}

// tables reads everything that the product keeps; of a table that was read before, the columns it had then.
func tables(t *testing.T, d *DB, before map[string]table) map[string]table {
	t.Helper()
	out := map[string]table{}
	must(t, d.Read(context.Background(), func(tx *sql.Tx) error {
		names, err := list(&Tx{tx: tx}, "tables", text[string], `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'schema_migrations')`)
		if err != nil {
			return err
		}
		for _, name := range names {
			columns := before[name].columns
			if columns == nil {
				if columns, err = list(&Tx{tx: tx}, "columns", text[string], `SELECT name FROM pragma_table_info(?)`, name); err != nil {
					return err
				}
			}
			quoted := "quote(" + strings.Join(columns, ") || ' | ' || quote(") + ")"
			rows, err := list(&Tx{tx: tx}, "rows", text[string], fmt.Sprintf(`SELECT %s FROM %s`, quoted, name))
			if err != nil {
				return err
			}
			out[name] = table{columns, rows}
		}
		return nil
	}))
	return out
}

// A store of every earlier schema comes through with every row that was in it, in the order it had, and is read by the product.
func TestMigrate_KeepsEveryGeneration(t *testing.T) {
	latest := SchemaVersion()
	for n := 1; n < latest; n++ {
		t.Run(fmt.Sprintf("from %d to %d", n, latest), func(t *testing.T) {
			home := newHome(t)
			d := open(t, Options{Home: home, migrations: firstSteps(t, n)})
			for i := 1; i <= n; i++ {
				must(t, d.Commit(context.Background(), "test", func(tx *sql.Tx) error { _, err := tx.Exec(seeds[i]); return err }))
			}
			before := tables(t, d, nil)
			must(t, d.Close())
			d = open(t, Options{Home: home})
			after := tables(t, d, before)
			total := 0
			for name, was := range before {
				now, there := after[name]
				kept := now.rows
				if name == "settlements" && len(kept) > len(was.rows) {
					kept = kept[:len(was.rows)]
				}
				if !there || !slices.Equal(kept, was.rows) {
					t.Errorf("%s held\n%s\nand holds\n%s", name, strings.Join(was.rows, "\n"), strings.Join(now.rows, "\n"))
				}
				total += len(was.rows)
			}
			if total < 25 {
				t.Fatalf("only %d rows were looked at", total)
			}
			reads(t, d, n)
		})
	}
}

// reads wants the product's own reading of what was seeded at schema n.
func reads(t *testing.T, d *DB, n int) {
	t.Helper()
	must(t, Store{DB: d}.Read(context.Background(), func(tx session.Tx) error {
		s, err := tx.Session("s1")
		must(t, err)
		runs, err := tx.OpenRuns("s1")
		must(t, err)
		asked, err := tx.OpenApprovals("s1")
		must(t, err)
		lost, err := tx.Effect("e1")
		must(t, err)
		if s.Generation != 3 || len(runs) != 2 || len(asked) != 1 || asked[0].ID != "p1" || lost.Fact != session.FactUnknown || lost.Lookup == "" {
			t.Errorf("session %+v, %d runs, questions %+v, call %+v", s, len(runs), asked, lost)
		}
		reqs, err := tx.RequestsOf("r1")
		must(t, err)
		if want := usage.Report(10, 20, usage.Parts{}); len(reqs) == 0 || reqs[0].Usage() != want {
			t.Errorf("requests %+v; want %+v, whose parts nobody knows", reqs, want)
		}
		if n >= 16 {
			if want := usage.Report(100, 20, usage.Parts{CacheRead: usage.Of(60), Reasoning: usage.Of(0)}); len(reqs) != 2 || reqs[1].Usage() != want {
				t.Errorf("requests %+v; want %+v", reqs, want)
			}
		}
		if n < 3 { // what was known was carried over into the list
			got, err := tx.Settlements("e2")
			must(t, err)
			if len(got) != 1 || got[0].By != session.SettledByProbe || got[0].At.UnixMilli() != 105 {
				t.Errorf("settlements %+v", got)
			}
		}
		return nil
	}))
}
