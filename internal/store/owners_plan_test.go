package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A page of a list costs what its owner has at most, even where that owner has all rows of the installation, which is
// when the order of their numbers looks best to the planner: it plans for all owners alike, and the next one may have
// a few rows among those of others.
func TestAPageOfAListReadsNoRowsOfOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "ada@example.com")
		e := endpointIn(t, db, home.first)
		event := newEvent(e, "{}")
		capture(t, db, event)
		fillLists(t, db, e, event, 1_000)
		ref, id, before := string(e.ID), string(event.ID), int64(900)
		key := hookglass.Principal{Endpoint: e.ID}
		for _, list := range []struct {
			table string
			who   hookglass.Principal
			read  func(v *store.View) error
		}{
			{"replays", home.everywhere, func(v *store.View) error { return found(v.Replays(ref, id, before, 25)) }},
			{"releases", home.everywhere, func(v *store.View) error { return found(v.Releases(ref, id, before, 25)) }},
			{"replay_cases", home.everywhere, func(v *store.View) error { return found(v.ReplayCases(ref, before, 25)) }},
			{"replay_case_runs", home.everywhere, func(v *store.View) error { return found(v.ReplayRuns(ref, "", before, 25)) }},
			{"replay_case_runs", home.everywhere, func(v *store.View) error { return found(v.ReplayRuns(ref, "id1", before, 25)) }},
			{"replay_batches", home.everywhere, func(v *store.View) error { return found(v.ReplayBatches(ref, before, 25)) }},
			{"replay_batch_items", home.everywhere, func(v *store.View) error { return found(v.BatchItems(ref, "id1", 100, 25)) }},
			{"action_runs", home.everywhere, func(v *store.View) error { return found(v.ActionRuns(ref, "id1", "id900", 25)) }},
			{"action_runs", home.everywhere, func(v *store.View) error { return found(v.EndpointActionRuns(ref, "id900", 25)) }},
			{"action_runs", home.everywhere, func(v *store.View) error { return found(v.EventActionRuns(event.Seq, 25)) }},
			{"forwards", home.everywhere, func(v *store.View) error { return found(v.Forwards(ref, 1, before, 25)) }},
			{"forwards", home.everywhere, func(v *store.View) error { return found(v.FailedForwardsOf(ref, 1, before, 25)) }},
			{"forwarding_targets", home.everywhere, func(v *store.View) error { return found(v.ForwardingTargets(ref, 100, 25)) }},
			{"alerts", home.everywhere, func(v *store.View) error { return found(v.Alerts(ref, 100, 25)) }},
			{"alert_incidents", home.everywhere, func(v *store.View) error { return found(v.Incidents(ref, "id1", before, 25)) }},
			{"tunnel_gaps", home.everywhere, func(v *store.View) error { return found(v.GapHistory(ref, 5)) }},
			{"tunnel_gaps", home.everywhere, func(v *store.View) error { return found(v.Gaps([]int64{e.Num}, 100, 5)) }},
			{"tunnel_reports", home.everywhere, func(v *store.View) error { return found(v.Reports(event.Seq, 25)) }},
			{"tunnel_reports", home.everywhere, func(v *store.View) error { _, err := v.FirstAnswer(event.Seq); return err }},
			{"tunnel_commands", home.everywhere, func(v *store.View) error { return found(v.WaitingTunnelCommands(1, 100, 25, v.Now)) }},
			{"shares", home.everywhere, func(v *store.View) error {
				return found(v.Shares(ref, store.ShareList{Before: before, Limit: 25}, v.Now))
			}},
			{"shares", home.everywhere, func(v *store.View) error { return found(v.Shares(ref, store.ShareList{Event: id, Limit: 25}, v.Now)) }},
			{"flows", home.everywhere, func(v *store.View) error { return found(v.Flows("", before, 25)) }},
			{"flows", home.everywhere, func(v *store.View) error { return found(v.Flows(hookglass.FlowPassed, 0, 25)) }},
			{"tags", home.everywhere, func(v *store.View) error { return found(v.Tags(0, 100, 25)) }},
			{"tags", home.everywhere, func(v *store.View) error { return found(v.Tags(home.first.ID, 100, 25)) }},
			{"notification_channels", home.everywhere, func(v *store.View) error { return found(v.Channels(0, 100, 25)) }},
			{"notification_channels", home.everywhere, func(v *store.View) error { return found(v.Channels(home.first.ID, 100, 25)) }},
			{"notifications", hookglass.System, func(v *store.View) error {
				waiting, _, err := v.Waiting(store.HeldChannel{Channel: hookglass.Channel{Num: 1}}, 25)
				return found(waiting, err)
			}},
			{"action_secrets", home.everywhere, func(v *store.View) error { return found(v.ActionSecrets(home.first.ID, 100, 25)) }},
			{"action_secrets", home.everywhere, func(v *store.View) error { return found(v.WorkspaceActionSecrets(home.first.ID)) }},
			{"activities", home.everywhere, func(v *store.View) error {
				return found(v.Activity(hookglass.ActivityForwardingFailed, time.Time{}, 25))
			}},
			{"activities", key, func(v *store.View) error {
				return found(v.Activity(hookglass.ActivityForwardingFailed, time.Time{}, 25))
			}},
		} {
			looked := 0
			view(t, db, list.who, func(v *store.View) {
				var seen []statement
				recorded := *v
				recorded.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
				if err := list.read(&recorded); err != nil {
					t.Errorf("%s: %v", list.table, err)
				}
				for _, s := range seen {
					of := regexp.MustCompile(`FROM ` + list.table + `( [a-z]| |$)`).FindStringSubmatch(s.text)
					if of == nil || !strings.Contains(s.text, "ORDER BY") {
						continue
					}
					looked++
					name := list.table
					if alias := strings.TrimSpace(of[1]); alias != "" {
						name = alias
					}
					plan, err := db.Plan(t.Context(), s.text, s.args...)
					if text := strings.Join(plan, "\n"); err != nil || readsOthers(text, list.table, name) {
						t.Errorf("%v %s\n%s", err, s.text, text)
					}
				}
			})
			if looked == 0 {
				t.Errorf("no statement on %s was looked at", list.table)
			}
		}
	})
}

// An account that came late may have many endpoints, too. Those of others are before them in the order of the numbers.
func TestAPageOfEndpointsReadsNoneOfOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "ada@example.com")
		rows := "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 2000) INSERT INTO "
		writing(t, db, func(tx *store.Tx) error {
			err := tx.Exec(rows+`endpoints
				(num, id, account_id, workspace_id, name, kind, provider_config, enabled, created_at, updated_at)
				SELECT 1000 + n, 'id' || n, CASE WHEN n > 1000 THEN cast($1 AS bigint) END,
					CASE WHEN n > 1000 THEN cast($2 AS bigint) END, 'a', 'webhook', '{}', 1, 1, 1 FROM s`,
				home.account.ID, home.first.ID)
			if err == nil {
				err = tx.Exec(rows + `endpoint_stats (endpoint, event_count, ignored_count, refused_count, floor_seq)
					SELECT 1000 + n, 0, 0, 0, 0 FROM s`)
			}
			if err == nil && db.Postgres() {
				err = tx.Exec("ANALYZE endpoints, endpoint_stats")
			}
			return err
		})
		own := regexp.MustCompile(`SEARCH e USING INDEX endpoints_account \(account_id=\?`)
		others := regexp.MustCompile(`SCAN e\b|TEMP B-TREE`)
		if db.Postgres() {
			own = regexp.MustCompile(`endpoints_(account|workspace) on endpoints`)
			others = regexp.MustCompile(`endpoints_pkey on endpoints e.*\n *Index Cond: \(num >|Seq Scan`)
		}
		older := func(a, b hookglass.Endpoint) int { return cmp.Compare(a.Num, b.Num) }
		for name, read := range map[string]func(v *store.View) ([]hookglass.Endpoint, error){
			"the first page": func(v *store.View) ([]hookglass.Endpoint, error) { return v.Endpoints(0, 25) },
			"a later page":   func(v *store.View) ([]hookglass.Endpoint, error) { return v.Endpoints(2100, 25) },
			"by name": func(v *store.View) ([]hookglass.Endpoint, error) {
				return v.EndpointsNamed([]string{"A"}, 25)
			},
		} {
			view(t, db, home.everywhere, func(v *store.View) {
				var seen []statement
				recorded := *v
				recorded.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
				page, err := read(&recorded)
				if err != nil || len(page) != 25 || !slices.IsSortedFunc(page, older) {
					t.Errorf("%s: %d endpoints, %v", name, len(page), err)
				}
				plan, err := db.Plan(t.Context(), seen[0].text, seen[0].args...)
				if text := strings.Join(plan, "\n"); err != nil || !own.MatchString(text) || others.MatchString(text) {
					t.Errorf("%s: %v %s\n%s", name, err, seen[0].text, text)
				}
			})
		}
	})
}

// What is planned while there are a few rows looks up, once there are many, those that are wanted.
func TestPlansOfAFewRowsLookUpWhatIsWanted(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	e := endpointIn(t, db, newTenant(t, db, "ada@example.com").first)
	event := newEvent(e, "{}")
	capture(t, db, event)
	several(t, db, e, 40)
	fillLists(t, db, e, event, 40)
	if err := db.Analyze(t.Context()); err != nil {
		t.Fatal(err)
	}
	ref := string(e.ID)
	for _, c := range []struct {
		name, tables string
		do           func(tx *store.Tx) error
	}{
		{"failed deliveries of a page", "tunnel_reports|action_runs|forwards", func(tx *store.Tx) error { return tx.LoadFailed([]*hookglass.Event{event}) }},
		{"channels that are due", "notification_channels c|workspaces|endpoints", func(tx *store.Tx) error { return found(tx.ChannelsDue(tx.Now, 1000, 20)) }},
		{"lines of the ledger", "action_runs|forwards|tunnel_events", func(tx *store.Tx) error {
			_, _, err := tx.LedgerLines(ref, tx.Now.Add(-time.Hour).Truncate(time.Minute), tx.Now.Add(time.Hour).Truncate(time.Minute), 0, 20)
			return err
		}},
		{"the ledger", "action_runs|forwards|replays", func(tx *store.Tx) error {
			_, err := tx.Ledger(ref, tx.Now.Add(-time.Hour).Truncate(time.Minute), tx.Now.Add(time.Hour).Truncate(time.Minute))
			return err
		}},
		{"captures of the feed", "events", func(tx *store.Tx) error {
			return found(tx.Activity(hookglass.ActivityWebhookReceived, tx.Now.Add(-time.Hour), 20))
		}},
		{"endpoints with tasks", "endpoints", func(tx *store.Tx) error { _, err := tx.TaskQueues(store.TaskActions); return err }},
		{"duplicates", "forwards|forward_keys|events", func(tx *store.Tx) error { _, err := tx.Duplicates([]int64{1}); return err }},
		{"undelivered events", "tunnel_events", func(tx *store.Tx) error {
			_, _, err := tx.UndeliveredEvents(e.Num, store.Undelivered{Since: tx.Now.Add(-time.Hour), Limit: 20})
			return err
		}},
		{"how many are undelivered", "tunnel_events", func(tx *store.Tx) error { _, _, err := tx.CountUndelivered(e.Num, tx.Now.Add(-time.Hour)); return err }},
		{"runs without a job", "replay_case_runs", func(tx *store.Tx) error { return tx.RequeueReplayRuns(tx.Now, 20) }},
		{"batches without a job", "replay_batches", func(tx *store.Tx) error { return tx.RequeueReplayBatches(tx.Now, 20) }},
		{"figures past their time", "rollups|action_totals", func(tx *store.Tx) error { _, err := tx.PurgeFigures(); return err }},
		{"waiting duplicates", "forwards|forward_keys", func(tx *store.Tx) error { _, err := tx.WakeDuplicates([]int64{1}, tx.Now); return err }},
		{"channels of alerts", "alert_channels", func(tx *store.Tx) error { return found(tx.Alerts(ref, 0, 20)) }},
		{"channels of a line of the feed", "notification_channels", func(tx *store.Tx) error {
			return tx.AddActivity(hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: tx.Now, EndpointID: e.ID})
		}},
		{"sockets of an endpoint", "tunnel_subscriptions", func(tx *store.Tx) error { return found(tx.TunnelConnections(ref)) }},
		{"what a file declared", "declared", func(tx *store.Tx) error { return found(tx.Declared(e.WorkspaceID)) }},
		{"tokens of a user", "tokens", func(tx *store.Tx) error { return found(tx.Tokens(1)) }},
		{"old incidents", "alert_incidents", func(tx *store.Tx) error {
			due, err := tx.IncidentsDue(tx.Now, time.Hour)
			if err := found(due, err); err != nil {
				return err
			}
			_, err = tx.PurgeIncidents(due)
			return err
		}},
		{"old attempts", "script_positions", func(tx *store.Tx) error {
			due, err := tx.AttemptsDue(tx.Now.Add(3*time.Hour), time.Hour)
			if err := found(due, err); err != nil {
				return err
			}
			_, err = tx.PurgeAttempts(due)
			return err
		}},
		{"old replays", "replay_case_runs|replay_cases|replay_batches|replay_batch_items", func(tx *store.Tx) error {
			due, err := tx.ReplaysDue(tx.Now, time.Hour)
			if err != nil || due.None() {
				return errors.Join(err, errors.New("nothing is due"))
			}
			_, err = tx.PurgeReplays(due)
			return err
		}},
		{"a deleted endpoint", "script_positions|replay_batch_items", func(tx *store.Tx) error {
			if err := tx.DeleteEndpoint(&e); err != nil {
				return err
			}
			_, err := tx.EraseEvents(e.Num)
			return err
		}},
	} {
		var seen []statement
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			tx.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
			return errors.Join(errRollback, c.do(tx))
		})
		if !errors.Is(err, errRollback) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s: %v", c.name, err)
		}
		looksUp(t, db.Plan, c.name, c.tables, seen...)
	}
	looksUp(t, db.Plan, "deliveries of captures", "forwarding_targets|endpoints|accounts", statement{store.CaptureForwards, []any{[]int64{0}, []int64{e.Num}, 1, 1, []int64{0}}})
}

// What is planned for all arguments, while there are three rows, looks up one of many, too.
func TestPlansOfThreeRowsLookUpOne(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	e := endpointIn(t, db, newTenant(t, db, "ada@example.com").first)
	event := newEvent(e, "{}")
	capture(t, db, event)
	several(t, db, e, 2)
	fillLists(t, db, e, event, 3)
	if err := db.Analyze(t.Context()); err != nil {
		t.Fatal(err)
	}
	ref, secret := string(e.ID), []byte("id1")
	for _, c := range []struct {
		name, tables string
		do           func(tx *store.Tx) error
	}{
		{"an event", "events", func(tx *store.Tx) error { _, err := tx.Event(ref, string(event.ID)); return err }},
		{"a delivery", "events", func(tx *store.Tx) error { _, _, err := tx.Forward(ref, 1, event.ID); return err }},
		{"a session", "sessions", func(tx *store.Tx) error { _, err := tx.SessionUser(store.SessionBrowser, secret, tx.Now); return err }},
		{"the end of a session", "sessions", func(tx *store.Tx) error { _, err := tx.TakeSession(store.SessionBrowser, secret); return err }},
		{"browsers of a user", "sessions", func(tx *store.Tx) error { _, err := tx.BrowserSessions(1, tx.Now); return err }},
		{"a shared event", "shares", func(tx *store.Tx) error { _, err := tx.ShareByHash(secret, tx.Now); return err }},
		{"tokens of tunnels", "tokens", func(tx *store.Tx) error { _, err := tx.UsableTokens([]int64{1}, tx.Now); return err }},
		{"what tunnels have received", "tunnel_subscriptions", func(tx *store.Tx) error { return tx.SaveTunnelReceived(map[int64]int64{1: 5}) }},
		{"newest runs of cases", "replay_case_runs", func(tx *store.Tx) error { _, err := tx.ReplayCases(ref, 0, 20); return err }},
		{"interrupted bulk replays", "replay_batch_items", func(tx *store.Tx) error { _, err := tx.OrphanedBatchItems(tx.Now, 20); return err }},
	} {
		var seen []statement
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			tx.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
			if err := c.do(tx); err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
			return errRollback
		})
		if !errors.Is(err, errRollback) {
			t.Fatalf("%s: %v", c.name, err)
		}
		looksUp(t, db.PlanForAll, c.name, c.tables, seen...)
	}
}

// Statistics are of a table as it was. A merge that is planned to end soon reads what has come since, up to the row
// that is wanted.
func TestWhoAsksIsLookedUpAmongManyNewUsers(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	ada := newTenant(t, db, "ada@example.com")
	var seen []statement
	writing(t, db, func(tx *store.Tx) error {
		if err := tx.CreateSession(store.SessionBrowser, []byte("secret"), ada.user.ID, tx.Now.Add(time.Hour)); err != nil {
			return err
		}
		if err := tx.Exec("ANALYZE users, members, tokens, sessions"); err != nil {
			return err
		}
		if err := tx.Exec("INSERT INTO users (email, name, created_at) SELECT n, 'Ada', 1 FROM generate_series(1, 1000) AS n"); err != nil {
			return err
		}
		if err := tx.Exec("INSERT INTO members SELECT $1, id, 'member' FROM users WHERE id <> $2", ada.account.ID, ada.user.ID); err != nil {
			return err
		}
		tx.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
		_, session := tx.SessionUser(store.SessionBrowser, []byte("secret"), tx.Now)
		_, token := tx.TokenByHash([]byte("ada@example.com0"))
		return errors.Join(session, token)
	})
	looksUp(t, db.Plan, "who asks", "users|members|tokens|sessions", seen...)
}

// looksUp wants plans of PostgreSQL in which each scan of the tables is for some of their rows.
func looksUp(t *testing.T, plan func(ctx context.Context, query string, args ...any) ([]string, error), name, tables string, seen ...statement) {
	t.Helper()
	looked, scan := 0, regexp.MustCompile(`Scan.* on (`+tables+`)\b`)
	for _, s := range seen {
		lines, err := plan(t.Context(), s.text, s.args...)
		if err != nil {
			continue // of what is neither read nor changed
		}
		for i, line := range lines {
			if !scan.MatchString(line) {
				continue
			}
			looked++
			if strings.Contains(line, "Seq Scan") || i+1 == len(lines) || !strings.Contains(lines[i+1], "Cond: ") || mostRows.MatchString(lines[i+1]) {
				t.Errorf("%s: %s\n%s", name, s.text, strings.Join(lines, "\n"))
			}
		}
	}
	if looked == 0 {
		t.Errorf("%s: nothing was looked at", name)
	}
}

// mostRows is a condition that many rows meet: those that have not expired, the events of an endpoint, or what is being
// sent by all bulk replays.
var mostRows = regexp.MustCompile(`Cond: \(+(expires_at > |endpoint = [^)]*\) AND \(seq > |state = 'sending')`)

// found is an error for a list that is empty.
func found[T any](list []T, err error) error {
	if err == nil && len(list) == 0 {
		err = errors.New("nothing was found")
	}
	return err
}

// readsOthers reports whether a plan goes through a table, or through all endpoints, in the order of its numbers or from
// end to end.
func readsOthers(plan, table, name string) bool {
	return strings.Contains(plan, "Merge Join") || strings.Contains(plan, table+"_pkey on "+table) || strings.Contains(plan, "Seq Scan on "+table) ||
		regexp.MustCompile(`(?m)^(SEARCH `+name+` USING INTEGER PRIMARY KEY \(rowid[<>]|SCAN `+name+`\b)`).MatchString(plan)
}

// fillLists gives an endpoint n rows of everything that there is a list of. What owns others has the number 1 and the
// id id1.
func fillLists(t *testing.T, db *store.DB, e hookglass.Endpoint, event *hookglass.Event, n int) {
	t.Helper()
	later := time.Now().Add(time.Hour).UnixMicro()
	rows := fmt.Sprintf(" FROM (WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n, 'id' || n AS id FROM s) AS s", n)
	writing(t, db, func(tx *store.Tx) error {
		for _, fill := range []struct {
			columns, values string
		}{
			{"endpoints (id, name, kind, provider_config, enabled, created_at, updated_at)", "id, 'a', 'webhook', '{}', 1, 1, 1"},
			{"replays (id, endpoint, event, event_id, target_url, passed, replayed_at, record)", "id, ENDPOINT, EVENT, 'x', 'https://app.example.com/', 1, 1, JSON"},
			{"releases (id, endpoint, event, event_id, recipients, status, created_at)", "id, ENDPOINT, EVENT, 'x', '[]', 'sent', 1"},
			{"replay_cases (id, endpoint, source_id, lock_version, snapshot_version, sealed, snapshot, created_at, updated_at)", "id, ENDPOINT, 'x', 1, 1, JSON, JSON, 1, 1"},
			{"replay_case_runs (id, endpoint, case_num, case_id, lock_version, snapshot_version, idempotency_key, state, sealed, created_at, enqueued_at, finished_at)",
				"id, ENDPOINT, 1, 'id1', 1, 1, id, 'passed', JSON, 1, 1, 1"},
			{"replay_batches (id, endpoint, query, target_url, identity_mode, signature_mode, rate, stop_on_failure, state, total, passed, failed, created_at, updated_at, finished_at)",
				"id, ENDPOINT, '', 'https://app.example.com/', 'x', 'x', 1, 0, 'completed', 1, 1, 0, 1, 1, 1"},
			{"replay_batch_items (batch, event, event_id, state, started_at, finished_at)", "1, n, 'x', 'passed', 1, 1"},
			{"actions (id, endpoint, name, enabled, failure_policy, position, conditions, steps, created_at, updated_at)", "id, ENDPOINT, 'a', 1, 'stop', n, '[]', '[]', 1, 1"},
			{"action_runs (id, endpoint, action, action_id, event, event_id, rerun, status, claim, created_at)", "id, ENDPOINT, 1, 'id1', EVENT, 'x', 1, 'completed', 1, 1"},
			{"forwarding_targets (endpoint, name, url, enabled, timeout_seconds, retry_count, failures, created_at, updated_at)", "ENDPOINT, 'a', 'https://app.example.com/', 1, 1, 1, 0, 1, 1"},
			{"forwards (target, endpoint, event, state, claim, lost, created_at)", "1, ENDPOINT, EVENT, 'failed', 1, 0, 1"},
			{"alerts (id, endpoint, name, kind, enabled, config, state, changed_at, armed_at, version, cursor, created_at, updated_at)", "id, ENDPOINT, 'a', 'keyword', 1, '{}', 'ok', 1, 1, 1, 1, 1, 1"},
			{"alert_incidents (id, alert, summary, started_at, resolved_at)", "id, 1, 'a', 1, 1"},
			{"tunnel_gaps (id, endpoint, state, from_seq, to_seq, started_at, detected_at, reconnected_at, target_url, hostname, recovered_gone, expired_gone)",
				"id, ENDPOINT, 'reconnected', 1, 1, 1, 1, 1, '', '', 0, 1"},
			{"tunnel_reports (endpoint, event, attempt_id, version, status, reported_at, record)", "ENDPOINT, EVENT, id, 2, 200, 1, JSON"},
			{"tunnel_commands (id, endpoint, session, hash, request, created_at, expires_at)", "id, ENDPOINT, 1, JSON, JSON, 1, LATER"},
			{"shares (endpoint, event, event_id, hash, created_at, expires_at)", "ENDPOINT, EVENT, 'x', HASH, 1, LATER"},
			{"script_positions (endpoint, identity, script, position, at)", "ENDPOINT, HASH, 'a', 1, LATER"},
			{"tunnel_events (event, endpoint, reported_at, reports)", "EVENT, ENDPOINT, 1, 1"},
			{"forward_keys (forward, target, event, received_at, key)", "n, 1, EVENT, 1, HASH"},
			{"notification_channels (id, workspace_id, name, kind, enabled, sealed, shown, events, follows, cursor, due_at, leased_until, claim, tries, failures, created_at, updated_at)",
				"id, WORKSPACE, id, 'webhook', 1, JSON, '{}', '[]', 0, 0, 0, 0, 0, 0, 0, 1, 1"},
			{"notifications (id, channel, message, created_at)", "id, 1, JSON, 1"},
			{"flows (id, account_id, workspace_id, name, state, definition, progress, cursor, version, claim, leased_until, idempotency_key, fingerprint, started_at, deadline_at, finished_at)",
				"id, ACCOUNT, WORKSPACE, 'a', 'passed', JSON, JSON, 1, 1, 1, 0, id, JSON, 1, 1, 1"},
			{"tags (workspace_id, name, created_at)", "WORKSPACE, id, 1"},
			{"tokens (user_id, account_id, name, level, scopes, hash, hint, created_at)", "USER, ACCOUNT, id, 'full', '[]', HASH, '', 1"},
			{"sessions (hash, kind, user_id, created_at, expires_at)", "HASH, 'browser', USER, 1, LATER"},
			{"rollups (endpoint, span, start, figures)", "ENDPOINT, 1, n, '{}'"},
			{"action_totals (endpoint, hour, name, n)", "ENDPOINT, n, 'x', 1"},
			{"alert_channels (alert, channel)", "n, 1"},
			{"tunnel_sessions (id, node, client_id, client, connected_at)", "id, 'x', id, JSON, 1"},
			{"tunnel_subscriptions (session, endpoint, begins, received, target_url, hostname, reports, replays, subscribed_at)", "1, ENDPOINT, 1, 1, '', '', 1, 1, 1"},
			{"declared (workspace_id, file_set, kind, endpoint, ref, name, made, declared_at)", "WORKSPACE, 'default', 'target', ENDPOINT, id, id, 1, 1"},
			{"action_secrets (id, workspace_id, name, description, sealed, created_at, updated_at)", "id, WORKSPACE, id, '', JSON, 1, 1"},
			{"activities (account_id, endpoint, type, occurred_at, data)", "ACCOUNT, ENDPOINT, '" + string(hookglass.ActivityForwardingFailed) + "', LATER, '{}'"},
		} {
			json, hash, of := "cast('{}' AS blob)", "cast(id AS blob)", fmt.Sprint(event.Seq)
			if db.Postgres() {
				json, hash = "convert_to('{}', 'UTF8')", "convert_to(id, 'UTF8')"
			}
			if table, _, _ := strings.Cut(fill.columns, " "); table == "forwards" || table == "tunnel_events" {
				of = "CASE WHEN n = 5 THEN " + of + " ELSE 1000000 + n END" // each event once
			}
			values := strings.NewReplacer("ENDPOINT", fmt.Sprint(e.Num), "EVENT", of, "ACCOUNT", fmt.Sprint(e.AccountID), "USER", "(SELECT min(id) FROM users)", "WORKSPACE", fmt.Sprint(e.WorkspaceID),
				"JSON", json, "HASH", hash, "LATER", fmt.Sprint(later)).Replace(fill.values)
			table, _, _ := strings.Cut(fill.columns, " ")
			if err := tx.Exec("INSERT INTO " + fill.columns + " SELECT " + values + rows); err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
			if !db.Postgres() {
				continue // nothing ever gives an embedded database statistics
			}
			if err := tx.Exec("ANALYZE " + table); err != nil {
				return err
			}
		}
		return nil
	})
}
