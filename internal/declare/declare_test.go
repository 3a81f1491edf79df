package declare_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/declare"
	"hookglass/internal/endpoint"
	"hookglass/internal/endpointsfile"
	"hookglass/internal/outbound"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// yard is a database with an account.
type yard struct {
	t         *testing.T
	db        *store.DB
	keys      *seal.Keys
	accounts  *account.Service
	endpoints *endpoint.Service
	made      account.Registered
	who       hookglass.Principal
	actions   *action.Service
	svc       *declare.Service
}

func each(t *testing.T, test func(t *testing.T, y *yard)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		must(t, err)
		y := &yard{t: t, db: db, keys: keys, accounts: account.New(db, slog.New(slog.DiscardHandler))}
		y.made, err = y.accounts.Register(t.Context(), account.Registration{Email: "ada@example.com"})
		must(t, err)
		y.who = hookglass.Principal{Account: y.made.Account.ID, User: y.made.User.ID, Scopes: hookglass.System.Scopes}
		y.svc = y.node()
		test(t, y)
	})
}

// node is one more process on the database.
func (y *yard) node() *declare.Service {
	out := outbound.New(outbound.Config{})
	y.endpoints = endpoint.New(y.db, y.keys).Through(out)
	y.actions = action.New(y.db, action.Config{Client: out, Sealer: y.keys, Log: slog.New(slog.DiscardHandler)})
	return declare.New(y.db, y.endpoints, y.actions,
		alert.New(y.db, alert.Config{Client: out, Sealer: y.keys, Log: slog.New(slog.DiscardHandler)}))
}

// secrets are named by their value.
type secrets struct{}

func (secrets) Env(name string) (string, error) { return name, nil }
func (secrets) File(string) (string, error)     { return "", errors.New("names a file") }

func (y *yard) read(text string) api.Declaration {
	y.t.Helper()
	f, err := endpointsfile.Parse("file", []byte(text), secrets{})
	must(y.t, err)
	return f.Declaration
}

// apply applies a file and says what happened, in words.
func (y *yard) apply(text string) []string {
	y.t.Helper()
	changes, err := y.svc.Apply(y.t.Context(), y.who, y.read(text), false)
	must(y.t, err)
	return words(changes)
}

func words(changes []hookglass.DeclaredChange) []string {
	said := make([]string, len(changes))
	for i, c := range changes {
		fields := make([]string, len(c.Fields))
		for k, f := range c.Fields {
			fields[k] = f.Field
		}
		said[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", c.Op, c.Kind, c.Endpoint, c.Name, strings.Join(fields, ",")))
		said[i] = strings.Join(strings.Fields(said[i]), " ")
	}
	return said
}

func (y *yard) wants(got []string, want ...string) {
	y.t.Helper()
	if !slices.Equal(got, want) {
		y.t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// names lists the endpoints that there are.
func (y *yard) names() []string {
	y.t.Helper()
	var names []string
	must(y.t, y.db.View(y.t.Context(), y.who, func(v *store.View) error {
		all, err := v.Endpoints(0, 0)
		for _, e := range all {
			names = append(names, e.Name)
		}
		return err
	}))
	return names
}

const whole = `
endpoints:
- custom_id: pay
  name: Pay
  provider: stripe
  signature_configs: [{provider: stripe, secret: {env: whsec_1}}]
  forwarding_targets: [{name: crm, url: "https://crm.example.com/x", retry_count: 1, when: "event:invoice.*", headers: {Authorization: {env: hush_1}, X-Environment: staging}}]
  actions: [{name: Mark, steps: [{step_type: tag, name: T, config: {tag: paid}}]}]
  alerts: [{name: Quiet, kind: missing_webhook, config: {window_minutes: 5}}]
- {custom_id: mail, kind: email, email_local_part: orders}
`

func TestADeclarationIsAppliedOnceAndThenNothingChanges(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.wants(y.apply(whole), "create endpoint pay", "create signature_config pay stripe", "create forwarding_target pay crm", "create action pay Mark",
			"create alert pay Quiet", "create endpoint mail")
		y.wants(y.apply(whole), "unchanged endpoint pay", "unchanged signature_config pay stripe", "unchanged forwarding_target pay crm",
			"unchanged action pay Mark", "unchanged alert pay Quiet", "unchanged endpoint mail")
		y.wants(y.names(), "Pay", "mail")
		changed := strings.NewReplacer("whsec_1", "whsec_2", "retry_count: 1", "retry_count: 2", "tag: paid", "tag: sold", "window_minutes: 5", "window_minutes: 6", "name: Pay", "name: Paying").Replace(whole)
		dry, err := y.svc.Apply(t.Context(), y.who, y.read(changed), true)
		must(t, err)
		want := []string{"update endpoint pay name", "update signature_config pay stripe secret", "update forwarding_target pay crm retry_count", "update action pay Mark steps",
			"update alert pay Quiet config", "unchanged endpoint mail"}
		y.wants(words(dry), want...)
		y.wants(y.names(), "Pay", "mail")
		y.wants(y.apply(changed), want...)
		y.wants(y.apply(strings.Replace(changed, "hush_1", "hush_2", 1))[2:3], "update forwarding_target pay crm headers")
		y.wants(y.apply(strings.Replace(changed, "Authorization: {env: hush_1}, ", "", 1))[2:3], "update forwarding_target pay crm headers")
		y.wants(y.apply(strings.Replace(changed, "{Authorization: {env: hush_1}, X-Environment: staging}", "{X-Environment: hush_3}", 1))[2:3], "update forwarding_target pay crm headers")
		y.wants(y.apply(strings.Replace(changed, ", headers: {Authorization: {env: hush_1}, X-Environment: staging}", "", 1))[2:3], "unchanged forwarding_target pay crm")
		back, err := y.svc.Apply(t.Context(), y.who, y.read(changed), true)
		must(t, err)
		for _, c := range append(dry, back...) {
			for _, f := range c.Fields {
				if strings.Contains(f.Before+f.After, "whsec") || strings.Contains(f.Before+f.After, "hush") || strings.Contains(f.Before+f.After, "staging") {
					t.Errorf("a secret shows: %+v", f)
				}
			}
		}
	})
}

func TestWhatIsNoLongerDeclaredIsDeletedOnlyIfTheFileMadeItAndPruneSaysSo(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		name, id := "By hand", "hand"
		hand, err := y.endpoints.Create(t.Context(), y.who, endpoint.Draft{Name: &name, CustomID: &id})
		must(t, err)
		_, err = y.endpoints.Create(t.Context(), y.who, endpoint.Draft{Name: &name})
		must(t, err)
		y.wants(y.apply(whole + "- {custom_id: hand, name: Adopted}\n")[6:], "update endpoint hand name")

		y.wants(y.apply("endpoints: [{custom_id: pay}]"), "unchanged endpoint pay", "keep endpoint mail", "release endpoint hand",
			"keep signature_config pay stripe", "keep forwarding_target pay crm", "keep action pay Mark", "keep alert pay Quiet")
		y.wants(y.names(), "Adopted", "By hand", "Pay", "mail")

		y.wants(y.apply("prune: true\nendpoints: [{custom_id: pay, forwarding_targets: [{name: crm}]}]"), "unchanged endpoint pay", "unchanged forwarding_target pay crm",
			"delete endpoint mail", "delete signature_config pay stripe", "delete action pay Mark", "delete alert pay Quiet")
		y.wants(y.apply("prune: true\nendpoints: []"), "delete endpoint pay")
		y.wants(y.names(), "Adopted", "By hand")
		y.wants(y.apply("prune: true\nendpoints: []"))
		// By its id, what has no custom id is declared as well.
		y.wants(y.apply("endpoints: [{id: "+string(hand.ID)+", custom_id: other, name: Again}]"), "update endpoint other custom_id,name")
	})
}

func TestNothingIsAppliedUnlessAllIsValid(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.apply("endpoints: [{custom_id: taken, kind: email}]")
		_, err := y.svc.Apply(t.Context(), y.who, y.read(`
endpoints:
- {custom_id: good, name: Good}
- {custom_id: bad one, name: Bad}
- custom_id: parts
  forwarding_targets: [{name: a, url: "ftp://x"}, {name: b}]
  actions: [{name: x, steps: [{step_type: forward, config: {}}]}]
  alerts: [{name: y, kind: missing_webhook, config: {window_minutes: 0}}, {name: z, kind: missing_webhook, config: {window_minutes: 1}, channels: [nobody]}]
- {custom_id: taken, kind: webhook}
`), false)
		var coded *hookglass.Error
		if !errors.As(err, &coded) || coded.Code != hookglass.CodeValidationFailed {
			t.Fatal(err)
		}
		var fields []string
		for _, d := range coded.Details {
			fields = append(fields, d.Field)
		}
		y.wants(fields, "endpoints.1.custom_id", "endpoints.2.forwarding_targets.0.url", "endpoints.2.forwarding_targets.1.url", "endpoints.2.actions.0.steps.0.config.url",
			"endpoints.2.alerts.0.config.window_minutes", "endpoints.2.alerts.1.channels.0", "endpoints.3.kind")
		y.wants(y.names(), "taken")
	})
}

// A forbidden target is told where it stands, as what is not valid is.
func TestAForbiddenTargetIsToldByItsField(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		for field, part := range map[string]string{
			"endpoints.0.forwarding_targets.0.url": `forwarding_targets: [{name: a, url: "http://10.0.0.1/"}]`,
			"endpoints.0.actions.0.steps.1.config.url": `actions: [{name: a, steps: [
				{step_type: ignore}, {step_type: forward, config: {url: "http://10.0.0.1/"}}]}]`,
		} {
			_, err := y.svc.Apply(t.Context(), y.who, y.read("endpoints: [{custom_id: aa, "+part+"}]"), false)
			var coded *hookglass.Error
			if !errors.As(err, &coded) || coded.Code != hookglass.CodeTargetNotAllowed {
				t.Fatalf("%s: %v", part, err)
			}
			if len(coded.Details) != 1 || coded.Details[0].Field != field {
				t.Errorf("%s: %v, want a fault of %s", part, coded.Details, field)
			}
		}
		y.wants(y.names())
	})
}

func TestWhatIsWrongWithoutTheDatabase(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		many := "endpoints:\n"
		for i := range declare.MaxEndpoints + 1 {
			many += fmt.Sprintf("- {custom_id: e%d}\n", i)
		}
		for text, field := range map[string]string{
			"version: 2":             "version",
			"set: A B":               "set",
			"workspace: Any":         "workspace",
			"workspace: 999":         "workspace",
			"endpoints: [{name: a}]": "endpoints.0.custom_id",
			"endpoints: [{custom_id: aa}, {custom_id: aa}]":                                      "endpoints.1.custom_id",
			"endpoints: [{id: ep_0000000000000000000000000a}]":                                   "endpoints.0.id",
			"endpoints: [{custom_id: aa, actions: [{name: x}, {name: x}]}]":                      "endpoints.0.actions.1.name",
			"endpoints: [{custom_id: aa, signature_configs: [{secret: {env: X}}]}]":              "endpoints.0.signature_configs.0.provider",
			"endpoints: [{custom_id: aa, kind: email, signature_configs: [{provider: stripe}]}]": "endpoints.0.signature_configs.0.secret",
			many: "endpoints",
		} {
			_, err := y.svc.Apply(t.Context(), y.who, y.read(text), false)
			var coded *hookglass.Error
			if !errors.As(err, &coded) || coded.Code != hookglass.CodeValidationFailed || len(coded.Details) == 0 || coded.Details[0].Field != field {
				t.Errorf("%.60s: %v, want a fault of %s", text, err, field)
			}
		}
		y.wants(y.names())
	})
}

// Of a declaration that is too large nothing else is told: it may hold hundreds of thousands of faults.
func TestADeclarationThatIsTooLargeIsRefusedForThat(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		for _, d := range []api.Declaration{
			{Endpoints: make([]api.DeclaredEndpoint, 300_000)},
			{Endpoints: []api.DeclaredEndpoint{{Alerts: make([]api.DeclaredAlert, 300_000)}}},
		} {
			_, err := y.svc.Apply(t.Context(), y.who, d, false)
			var coded *hookglass.Error
			if !errors.As(err, &coded) || len(coded.Details) != 1 || coded.Details[0].Field != "endpoints" {
				t.Errorf("%.100v", err)
			}
		}
	})
}

func TestPlansAndWorkspacesHoldForDeclarations(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.apply("endpoints: [{custom_id: mine}]")
		other, err := y.accounts.Register(t.Context(), account.Registration{Email: "eve@example.com"})
		must(t, err)
		eve := hookglass.Principal{Account: other.Account.ID, User: other.User.ID, Scopes: hookglass.System.Scopes}
		if _, err := y.svc.Apply(t.Context(), eve, y.read("endpoints: [{custom_id: mine, name: Stolen}]"), false); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("the custom id of another account: %v", err)
		}
		y.wants(y.names(), "mine")
		free := hookglass.PlanFree
		_, err = y.accounts.SetAccount(t.Context(), y.who.Account, account.Change{Plan: &free})
		must(t, err)
		_, err = y.svc.Apply(t.Context(), y.who, y.read("endpoints: [{custom_id: mine, actions: [{name: A}]}, {custom_id: more}]"), false)
		if !hookglass.Is(err, hookglass.CodePlanRequired) {
			t.Errorf("actions on the free plan: %v", err)
		}
		y.wants(y.names(), "mine")
		key := hookglass.Principal{Endpoint: "ep_x", Scopes: hookglass.System.Scopes}
		if _, err := y.svc.Apply(t.Context(), key, y.read("endpoints: []"), false); !hookglass.Is(err, hookglass.CodeForbidden) {
			t.Errorf("with the key of a temporary endpoint: %v", err)
		}
	})
}

// Whoever may see an endpoint of another workspace is told where it is; whoever may not learns nothing of it.
func TestAnEndpointOfAnotherWorkspaceIsSaidToBeThere(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		second, err := y.accounts.CreateWorkspace(t.Context(), y.who, y.who.Account, "Second")
		must(t, err)
		y.apply("{workspace: Second, endpoints: [{custom_id: theirs}]}")
		var id hookglass.EndpointID
		must(t, y.db.View(t.Context(), y.who, func(v *store.View) error {
			e, err := v.Endpoint("theirs")
			id = e.ID
			return err
		}))
		within := y.who
		within.Workspace = y.made.Workspace.ID
		there := `is an endpoint of the workspace "Second", and a file is for one workspace`
		for _, c := range []struct {
			who  hookglass.Principal
			text string
			want hookglass.FieldError
		}{
			{y.who, "endpoints: [{id: " + string(id) + "}]", hookglass.FieldError{Field: "endpoints.0.id", Message: there}},
			{y.who, "endpoints: [{custom_id: theirs}]", hookglass.FieldError{Field: "endpoints.0.custom_id", Message: there}},
			{within, "endpoints: [{id: " + string(id) + "}]", hookglass.FieldError{Field: "endpoints.0.id", Message: "is no endpoint of the workspace"}},
			{within, "endpoints: [{custom_id: theirs}]", hookglass.FieldError{Field: "endpoints.0.custom_id", Message: "is taken"}},
		} {
			_, err := y.svc.Apply(t.Context(), c.who, y.read(c.text), true)
			coded, _ := errors.AsType[*hookglass.Error](err)
			if coded == nil || !slices.Equal(coded.Details, []hookglass.FieldError{c.want}) {
				t.Errorf("%s: %v, want %v", c.text, err, c.want)
			}
		}
		if changes, err := y.svc.Apply(t.Context(), y.who, y.read(fmt.Sprintf("{workspace: %d, endpoints: [{id: %s}]}", second.ID, id)), true); err != nil {
			t.Errorf("in its own workspace: %v %v", changes, err)
		}
	})
}

func TestSetsDoNotTouchOneAnother(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.apply("set: one\nendpoints: [{custom_id: aa}]")
		y.wants(y.apply("set: two\nprune: true\nendpoints: [{custom_id: bb}]"), "create endpoint bb")
		_, err := y.svc.Apply(t.Context(), y.who, y.read("set: two\nendpoints: [{custom_id: aa, name: Mine}]"), false)
		if err == nil || !strings.Contains(err.Error(), `declared by the set "one"`) {
			t.Error(err)
		}
		y.wants(y.names(), "aa", "bb")
	})
}

func TestAnAddressAtRandomIsKept(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		const text = "endpoints: [{custom_id: mail, kind: email, email_local_part: null}]"
		y.wants(y.apply(text), "create endpoint mail")
		y.wants(y.apply(text), "unchanged endpoint mail")
	})
}

// YAML leaves a line end behind a name that is written below its key.
func TestBlanksAroundANameMakeNothingTwice(t *testing.T) {
	const file = `
prune: true
endpoints:
  - custom_id: hooks
    forwarding_targets:
      - {name: " target ", url: "https://example.com/in"}
    actions:
      - name: >
          Tag it
        steps: [{step_type: ignore, config: {reason: test}}]
    alerts:
      - {name: " Silence ", kind: missing_webhook, config: {window_minutes: 60}}
`
	each(t, func(t *testing.T, y *yard) {
		y.wants(y.apply(file), "create endpoint hooks", "create forwarding_target hooks target", "create action hooks Tag it", "create alert hooks Silence")
		y.wants(y.apply(file), "unchanged endpoint hooks", "unchanged forwarding_target hooks target", "unchanged action hooks Tag it", "unchanged alert hooks Silence")
		_, err := y.svc.Apply(t.Context(), y.who, y.read("endpoints: [{custom_id: hooks, alerts: [{name: a}, {name: 'a '}]}]"), false)
		if err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("two of one name: %v", err)
		}
	})
}

// Clients write texts in JSON with more escapes than files do.
func TestATextIsTheSameHoweverItIsSpelled(t *testing.T) {
	const file = `
endpoints:
  - custom_id: hooks
    actions:
      - name: Tag it
        steps:
          - step_type: tag
            name: Tag
            config: {tag: café}
            conditions:
              - {source: request, path: /body/place, operator: equals, value: café <1>}
              - {source: request, path: /body/n, operator: equals, value: 1.0}
`
	each(t, func(t *testing.T, y *yard) {
		y.apply(file)
		place := []byte(`"caf\u00e9 \u003c1\u003e"`)
		set := func(number string) {
			t.Helper()
			var a hookglass.Action
			must(t, y.db.View(t.Context(), y.who, func(v *store.View) error {
				all, err := v.Actions("hooks", 0, 0)
				a = all[0]
				return err
			}))
			step := action.StepDraft{ReferenceKey: &a.Steps[0].ReferenceKey, Type: string(a.Steps[0].Type), Name: &a.Steps[0].Name, Config: []byte(`{"tag": "caf\u00e9"}`),
				Conditions: []action.StepConditionDraft{
					{Source: "request", Path: new("/body/place"), Operator: "equals", Value: place}, {Source: "request", Path: new("/body/n"), Operator: "equals", Value: []byte(number)},
				}}
			_, err := y.actions.Update(t.Context(), y.who, "hooks", a.ID, action.Draft{Steps: &[]action.StepDraft{step}})
			must(t, err)
		}
		set("1.0")
		y.wants(y.apply(file), "unchanged endpoint hooks", "unchanged action hooks Tag it")
		set("1.00")
		y.wants(y.apply(file), "unchanged endpoint hooks", "update action hooks Tag it steps")
	})
}

func TestAnEndpointIsDeclaredOnceHoweverItIsNamed(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.apply("endpoints: [{custom_id: aa}]")
		var e hookglass.Endpoint
		must(t, y.db.View(t.Context(), y.who, func(v *store.View) (err error) { e, err = v.Endpoint("aa"); return err }))
		_, err := y.svc.Apply(t.Context(), y.who, y.read(fmt.Sprintf("endpoints: [{custom_id: aa, name: One}, {id: %s, name: Other}]", e.ID)), false)
		var coded *hookglass.Error
		if !errors.As(err, &coded) || len(coded.Details) != 1 || coded.Details[0].Field != "endpoints.1" || !strings.Contains(coded.Details[0].Message, "twice") {
			t.Errorf("by both of its ids: %v", err)
		}
		y.wants(y.names(), "aa")
	})
}

func TestNodesThatStartTogetherMakeEverythingOnce(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		d := y.read(whole)
		var nodes sync.WaitGroup
		var mu sync.Mutex
		made := 0
		for range 4 {
			svc := y.node()
			nodes.Go(func() {
				changes, err := svc.Apply(t.Context(), y.who, d, false)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, c := range changes {
					if c.Op == hookglass.OpCreate {
						made++
					} else if c.Op != hookglass.OpUnchanged {
						t.Errorf("%+v", c)
					}
				}
			})
		}
		nodes.Wait()
		if made != 6 {
			t.Errorf("%d things were made of 6", made)
		}
		y.wants(y.names(), "Pay", "mail")
	})
}

// What is deleted while it is declared is deleted before or after that, which is no fault of the declaration.
func TestWhatIsDeletedMeanwhileIsMadeAgainOrGone(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		d := y.read(`endpoints: [{custom_id: pay, name: Pay, forwarding_targets: [
			{name: a, url: "https://example.com"},
			{name: b, url: "https://example.com"},
			{name: c, url: "https://example.com"},
		]}]`)
		for n := range 8 {
			changes, err := y.svc.Apply(t.Context(), y.who, d, false) // the endpoint, then its targets
			must(t, err)
			e := changes[0].ID
			target, err := strconv.ParseInt(changes[3].ID, 10, 64)
			must(t, err)
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := y.svc.Apply(t.Context(), y.who, d, false); err != nil {
					t.Errorf("%d: %v", n, err)
				}
			})
			both.Go(func() {
				var err error
				if n%2 == 0 {
					_, err = y.endpoints.Delete(t.Context(), y.who, e)
				} else {
					err = y.endpoints.DeleteForwardingTarget(t.Context(), y.who, e, target)
				}
				if err != nil {
					t.Error(err)
				}
			})
			both.Wait()
		}
	})
}
