package action_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/store"
)

// fieldsIn are the fields that a validation failure names.
func fieldsIn(err error) string {
	var coded *hookglass.Error
	if !errors.As(err, &coded) {
		return fmt.Sprint(err)
	}
	var fields []string
	for _, d := range coded.Details {
		fields = append(fields, strings.TrimPrefix(d.Field, "endpoint_action."))
	}
	return strings.Join(fields, " ")
}

func TestDefinitionsAreChecked(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.secret("KNOWN", "some value")
		one := func(kind, config string, conditions ...action.StepConditionDraft) []action.StepDraft {
			return []action.StepDraft{step(kind, "S", config, conditions...)}
		}
		key := func(s action.StepDraft, key string) action.StepDraft { s.ReferenceKey = &key; return s }
		version := func(s action.StepDraft, v int64) action.StepDraft { s.ConfigVersion = &v; return s }
		policy := func(s action.StepDraft, p string) action.StepDraft { s.FailurePolicy = &p; return s }
		tag := step("tag", "S", `{"tag":"t"}`)
		operations := func(n int) string {
			return `{"source":"request","operations":[` + strings.TrimSuffix(strings.Repeat(`{"op":"select","path":""},`, n), ",") + `]}`
		}
		headers := func(n int) string {
			var h []string
			for i := range n {
				h = append(h, fmt.Sprintf(`"X-H%d":"v"`, i))
			}
			return `{"url":"https://a.example.com/","headers":{` + strings.Join(h, ",") + `}}`
		}
		for name, c := range map[string]struct {
			steps []action.StepDraft
			want  string // the fields at fault; empty: it is taken
		}{
			"no steps":                     {nil, ""},
			"unknown type":                 {one("email", `{}`), "steps.0.step_type"},
			"a key that is none":           {[]action.StepDraft{key(tag, "1a")}, "steps.0.reference_key"},
			"a key with a dot":             {[]action.StepDraft{key(tag, "a.b")}, "steps.0.reference_key"},
			"a key twice":                  {[]action.StepDraft{key(tag, "a"), key(tag, "a")}, "steps.1.reference_key"},
			"the current version":          {[]action.StepDraft{version(tag, 1)}, ""},
			"another version":              {[]action.StepDraft{version(tag, 2)}, "steps.0.config_version"},
			"a policy that is none":        {[]action.StepDraft{policy(tag, "retry")}, "steps.0.failure_policy"},
			"config is no object":          {one("tag", `[]`), "steps.0.config"},
			"a name twice in config":       {one("tag", `{"tag":"a","tag":"b"}`), "steps.0.config"},
			"tag: none":                    {one("tag", `{}`), "steps.0.config.tag"},
			"tag: a number":                {one("tag", `{"tag":1}`), "steps.0.config.tag"},
			"tag: a space":                 {one("tag", `{"tag":" x"}`), "steps.0.config.tag"},
			"tag: unknown key":             {one("tag", `{"tag":"x","color":"red"}`), "steps.0.config.color"},
			"ignore: the default":          {one("ignore", `{}`), ""},
			"ignore: another reason":       {one("ignore", `{"reason":"bored"}`), "steps.0.config.reason"},
			"ignore: unknown key":          {one("ignore", `{"why":"noise"}`), "steps.0.config.why"},
			"forward: bounds":              {one("forward", `{"url":"https://a.example.com","timeout_seconds":300,"retry_count":5}`), ""},
			"forward: least":               {one("forward", `{"url":"https://a.example.com","timeout_seconds":1,"retry_count":0,"append_path":true,"append_query":false}`), ""},
			"forward: beyond":              {one("forward", `{"url":"https://a.example.com","timeout_seconds":301,"retry_count":6}`), "steps.0.config.timeout_seconds steps.0.config.retry_count"},
			"forward: all of it":           {one("forward", `{"url":"ftp://a.example.com","timeout_seconds":0,"append_path":1,"x":1}`), "steps.0.config.timeout_seconds steps.0.config.append_path steps.0.config.url steps.0.config.x"},
			"forward: another type":        {one("forward", `{"url":5,"timeout_seconds":0}`), "steps.0.config.url steps.0.config.timeout_seconds"},
			"forward: below":               {one("forward", `{"url":"https://a.example.com","timeout_seconds":0,"retry_count":-1}`), "steps.0.config.timeout_seconds steps.0.config.retry_count"},
			"forward: a fraction":          {one("forward", `{"url":"https://a.example.com","retry_count":1.5}`), "steps.0.config.retry_count"},
			"forward: no url":              {one("forward", `{}`), "steps.0.config.url"},
			"forward: ftp":                 {one("forward", `{"url":"ftp://a.example.com"}`), "steps.0.config.url"},
			"forward: inside":              {one("forward", `{"url":"http://10.0.0.1/"}`), "steps.0.config.url"},
			"forward: inside, then a tag":  {[]action.StepDraft{step("forward", "A", `{"url":"http://10.0.0.1/"}`), tag}, "steps.0.config.url"},
			"forward: inside, twice":       {[]action.StepDraft{step("forward", "A", `{"url":"http://10.0.0.1/"}`), step("http_request", "B", `{"url":"http://10.0.0.2/"}`)}, "steps.0.config.url steps.1.config.url"},
			"forward: in vain and wrongly": {[]action.StepDraft{step("forward", "A", `{"url":"http://10.0.0.1/"}`), step("tag", "B", `{}`)}, "steps.0.config.url steps.1.config.tag"},
			"forward: append is a word":    {one("forward", `{"url":"https://a.example.com","append_path":"yes"}`), "steps.0.config.append_path"},
			"forward: unknown key":         {one("forward", `{"url":"https://a.example.com","headers":{}}`), "steps.0.config.headers"},
			"notify: unknown channel":      {one("notify", `{"channel":"Ops"}`), "steps.0.config.channel"},
			"notify: no channel":           {one("notify", `{"message":"x"}`), "steps.0.config.channel"},
			"transform: 50":                {one("transform", operations(50)), ""},
			"transform: 51":                {one("transform", operations(51)), "steps.0.config.operations"},
			"transform: no source":         {one("transform", `{"operations":[{"op":"select","path":""}]}`), "steps.0.config.source"},
			"transform: a source of 5":     {one("transform", `{"source":5,"operations":[{"op":"select","path":""}]}`), "steps.0.config.source"},
			"transform: unknown source":    {one("transform", `{"source":"secrets","operations":[{"op":"select","path":""}]}`), "steps.0.config.source"},
			"transform: a pointer":         {one("transform", `{"source":"request","operations":[{"op":"select","path":"/a~2"}]}`), "steps.0.config.operations.0.path"},
			"transform: unknown op":        {one("transform", `{"source":"request","operations":[{"op":"eval"}]}`), "steps.0.config.operations.0.op"},
			"transform: unknown key":       {one("transform", `{"source":"request","operations":[{"op":"select","path":""}],"x":1}`), "steps.0.config.x"},
			"request: no url":              {one("http_request", `{}`), "steps.0.config.url"},
			"request: an empty url":        {one("http_request", `{"url":""}`), "steps.0.config.url"},
			"request: a method":            {one("http_request", `{"url":"https://a.example.com","method":"TRACE"}`), "steps.0.config.method"},
			"request: a method of null":    {one("http_request", `{"url":"https://a.example.com","method":null}`), "steps.0.config.method"},
			"request: in lower case":       {one("http_request", `{"url":"https://a.example.com","method":"post"}`), "steps.0.config.method"},
			"request: GET with a body":     {one("http_request", `{"url":"https://a.example.com","method":"GET","body":"x"}`), "steps.0.config.body"},
			"request: HEAD without":        {one("http_request", `{"url":"https://a.example.com","method":"HEAD"}`), ""},
			"request: 30 s":                {one("http_request", `{"url":"https://a.example.com","timeout_seconds":30}`), ""},
			"request: 31 s":                {one("http_request", `{"url":"https://a.example.com","timeout_seconds":31}`), "steps.0.config.timeout_seconds"},
			"request: 2,048 characters":    {one("http_request", `{"url":"https://a.example.com/`+strings.Repeat("x", 2048-22)+`"}`), ""},
			"request: 2,049 characters":    {one("http_request", `{"url":"https://a.example.com/`+strings.Repeat("x", 2049-22)+`"}`), "steps.0.config.url"},
			"request: 50 headers":          {one("http_request", headers(50)), ""},
			"request: 51 headers":          {one("http_request", headers(51)), "steps.0.config.headers"},
			"request: a computed header":   {one("http_request", `{"url":"https://a.example.com","headers":{"Host":"b"}}`), "steps.0.config.headers.Host"},
			"request: no header name":      {one("http_request", `{"url":"https://a.example.com","headers":{"a b":"c"}}`), "steps.0.config.headers"},
			"request: a header twice":      {one("http_request", `{"url":"https://a.example.com","headers":{"A":"1","a":"2"}}`), "steps.0.config.headers.a"},
			"request: a header of 1":       {one("http_request", `{"url":"https://a.example.com","headers":{"A":1}}`), "steps.0.config.headers.A"},
			"request: a line break":        {one("http_request", `{"url":"https://a.example.com","headers":{"A":"1\r\nB: 2"}}`), "steps.0.config.headers.A"},
			"request: a body of JSON":      {one("http_request", `{"url":"https://a.example.com","body":{"a":1}}`), "steps.0.config.body"},
			"request: metadata":            {one("http_request", `{"url":"http://169.254.169.254/{{request.path}}"}`), "steps.0.config.url"},
			"request: a host filled in":    {one("http_request", `{"url":"https://{{request.headers.host}}/"}`), ""},
			"request: unknown key":         {one("http_request", `{"url":"https://a.example.com","retry_count":1}`), "steps.0.config.retry_count"},
			"template: not closed":         {one("http_request", `{"url":"https://a.example.com","body":"{{ request.body"}`), "steps.0.config.body"},
			"template: logic":              {one("http_request", `{"url":"https://a.example.com","body":"{{ if x }}"}`), "steps.0.config.body"},
			"template: unknown name":       {one("http_request", `{"url":"https://a.example.com","body":"{{ nothing.known }}"}`), ""},
			"a secret that is there":       {one("http_request", `{"url":"https://a.example.com","body":"{{ secrets.KNOWN }}"}`), ""},
			"a secret that is not":         {one("http_request", `{"url":"https://a.example.com","body":"{{ secrets.OTHER }}"}`), "steps.0.config.body"},
			"a later step":                 {[]action.StepDraft{step("http_request", "A", `{"url":"https://a.example.com","body":"{{ steps.b.status }}"}`), key(tag, "b")}, "steps.0.config.body"},
			"itself":                       {[]action.StepDraft{key(step("transform", "A", `{"source":"steps.a","operations":[{"op":"select","path":""}]}`), "a")}, "steps.0.config.source"},
			"an earlier step":              {[]action.StepDraft{key(tag, "b"), step("http_request", "A", `{"url":"https://a.example.com","body":"{{ steps.b.status }}"}`)}, ""},
			"a set from a later step":      {one("transform", `{"source":"request","operations":[{"op":"set","path":"/a","from":"/steps/b/output"}]}`), "steps.0.config.operations.0.from"},
			"a condition on a later step":  {one("tag", `{"tag":"t"}`, on("steps.b", "/status", "exists", "")), "steps.0.conditions.0.source"},
			"a condition's source":         {one("tag", `{"tag":"t"}`, on("secrets", "/a", "exists", "")), "steps.0.conditions.0.source"},
			"a condition's pointer":        {one("tag", `{"tag":"t"}`, on("request", "body", "exists", "")), "steps.0.conditions.0.path"},
			"a condition without a value":  {one("tag", `{"tag":"t"}`, on("request", "/body", "equals", "")), "steps.0.conditions.0.value"},
			"exists with a value":          {one("tag", `{"tag":"t"}`, on("request", "/body", "exists", `"x"`)), "steps.0.conditions.0.value"},
			"exists with null":             {one("tag", `{"tag":"t"}`, on("request", "/body", "exists", "null")), ""},
			"a condition's object":         {one("tag", `{"tag":"t"}`, on("request", "/body", "equals", "{}")), "steps.0.conditions.0.value"},
			"a condition without a path":   {one("tag", `{"tag":"t"}`, action.StepConditionDraft{Source: "request", Operator: "exists"}), "steps.0.conditions.0.path"},
			"a condition on all of it":     {one("tag", `{"tag":"t"}`, on("request", "", "exists", "")), ""},
			"more than 10 step conditions": {one("tag", `{"tag":"t"}`, slices.Repeat([]action.StepConditionDraft{on("request", "", "exists", "")}, 11)...), "steps.0.conditions"},
		} {
			a, err := b.actions.Create(t.Context(), b.who, string(b.ep.ID), draft("Checked", c.steps...))
			switch {
			case err == nil && c.want == "":
				must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), a.ID))
			case err == nil || fieldsIn(err) != c.want:
				t.Errorf("%s: %v, want fault with %q", name, err, c.want)
			case hookglass.Is(err, hookglass.CodeTargetNotAllowed) != (strings.Contains(name, "inside") || strings.Contains(name, "metadata")):
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestActionsThemselvesAreChecked(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		text := func(s string) *string { return &s }
		conditions := func(n int, value string) *[]action.ConditionDraft {
			list := slices.Repeat([]action.ConditionDraft{{Field: "request_path", Operator: "contains", Value: &value}}, n)
			return &list
		}
		zero, far := int64(0), int64(1000)
		for name, c := range map[string]struct {
			d    action.Draft
			want string
		}{
			"nothing":                {action.Draft{}, "name"},
			"an empty name":          {action.Draft{Name: text("  ")}, "name"},
			"a long name":            {action.Draft{Name: text(strings.Repeat("é", 201))}, "name"},
			"a name of 200":          {action.Draft{Name: text(strings.Repeat("é", 200))}, ""},
			"a policy":               {action.Draft{Name: text("a"), FailurePolicy: text("skip")}, "failure_policy"},
			"position 0":             {action.Draft{Name: text("a"), Position: &zero}, "position"},
			"a position beyond":      {action.Draft{Name: text("a"), Position: &far}, ""},
			"10 conditions":          {action.Draft{Name: text("a"), Conditions: conditions(10, "x")}, ""},
			"11 conditions":          {action.Draft{Name: text("a"), Conditions: conditions(11, "x")}, "conditions"},
			"a value of 500":         {action.Draft{Name: text("a"), Conditions: conditions(1, strings.Repeat("é", 500))}, ""},
			"a value of 501":         {action.Draft{Name: text("a"), Conditions: conditions(1, strings.Repeat("é", 501))}, "conditions.0.value"},
			"a value that is absent": {action.Draft{Name: text("a"), Conditions: &[]action.ConditionDraft{{Field: "provider", Operator: "equals"}}}, "conditions.0.value"},
			"exists without one":     {action.Draft{Name: text("a"), Conditions: &[]action.ConditionDraft{{Field: "provider", Operator: "exists"}}}, ""},
			"exists with one":        {action.Draft{Name: text("a"), Conditions: &[]action.ConditionDraft{{Field: "provider", Operator: "exists", Value: text("x")}}}, "conditions.0.value"},
			"an unknown field":       {action.Draft{Name: text("a"), Conditions: &[]action.ConditionDraft{{Field: "body", Operator: "exists"}}}, "conditions.0.field"},
			"an unknown operator":    {action.Draft{Name: text("a"), Conditions: &[]action.ConditionDraft{{Field: "provider", Operator: "is", Value: text("x")}}}, "conditions.0.operator"},
			"no regular expression":  {action.Draft{Name: text("a"), Conditions: &[]action.ConditionDraft{{Field: "provider", Operator: "matches", Value: text("(")}}}, "conditions.0.value"},
		} {
			a, err := b.actions.Create(t.Context(), b.who, string(b.ep.ID), c.d)
			switch {
			case err == nil && c.want == "":
				must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), a.ID))
			case err == nil || fieldsIn(err) != c.want:
				t.Errorf("%s: %v, want fault with %q", name, err, c.want)
			}
		}
	})
}

func TestAValueThatIsEmptyIsNotOneThatIsAbsent(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		name, empty := "a", ""
		for _, c := range []struct {
			value *string
			want  string
		}{{nil, "must be given with equals"}, {&empty, "must not be empty"}} {
			_, err := b.actions.Create(t.Context(), b.who, string(b.ep.ID), action.Draft{Name: &name, Conditions: &[]action.ConditionDraft{{Field: "provider", Operator: "equals", Value: c.value}}})
			var e *hookglass.Error
			if !errors.As(err, &e) || len(e.Details) != 1 || e.Details[0].Message != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
	})
}

func TestReferenceKeysAreDerivedAndKept(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		tag := func(name string) action.StepDraft { return step("tag", name, `{"tag":"t"}`) }
		a := b.create(draft("Keys", tag("Mark It!"), tag("mark it"), tag("7 days"), tag("日本"), tag(strings.Repeat("x", 100)), action.StepDraft{Type: "ignore"}))
		keys := func(a hookglass.Action) (all []string) {
			for _, st := range a.Steps {
				all = append(all, st.ReferenceKey)
			}
			return all
		}
		want := []string{"mark_it", "mark_it_2", "step_7_days", "tag", strings.Repeat("x", 56), "ignore"}
		if !slices.Equal(keys(a), want) {
			t.Errorf("the keys are %q, want %q", keys(a), want)
		}
		// A step that is sent with its key keeps it, whatever its name and place.
		renamed, kept := tag("Another name"), "mark_it_2"
		renamed.ReferenceKey = &kept
		steps := []action.StepDraft{renamed, tag("Fresh")}
		a, err := b.actions.Update(t.Context(), b.who, string(b.ep.ID), a.ID, action.Draft{Steps: &steps})
		must(t, err)
		if want := []string{"mark_it_2", "fresh"}; !slices.Equal(keys(a), want) || a.Steps[0].Name != "Another name" || a.Name != "Keys" {
			t.Errorf("after the change: %+v", a)
		}
	})
}

func TestPositions(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		at := func(n int64) *int64 { return &n }
		ids := map[string]string{}
		create := func(name string, position *int64) {
			d := draft(name)
			d.Position = position
			ids[name] = b.create(d).ID
		}
		order := func(want string) {
			t.Helper()
			var got []string
			must(t, b.db.View(t.Context(), b.who, func(v *store.View) error {
				all, err := v.Actions(string(b.ep.ID), 0, 0)
				for i, a := range all {
					if a.Position != i+1 {
						t.Errorf("%s is at position %d, want %d", a.Name, a.Position, i+1)
					}
					got = append(got, a.Name)
				}
				return err
			}))
			if s := strings.Join(got, ""); s != want {
				t.Errorf("the order is %s, want %s", s, want)
			}
		}
		move := func(name string, to int64) {
			t.Helper()
			_, err := b.actions.Update(t.Context(), b.who, string(b.ep.ID), ids[name], action.Draft{Position: at(to)})
			must(t, err)
		}
		create("A", nil)
		create("B", nil)
		create("C", at(1))
		create("D", at(99))
		order("CABD")
		move("D", 1)
		order("DCAB")
		move("D", 3)
		order("CADB")
		move("B", 50)
		order("CADB")
		must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), ids["A"]))
		order("CDB")
	})
}

func TestPlansLimitActions(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		tag := func(n int) (steps []action.StepDraft) {
			for range n {
				steps = append(steps, step("tag", "T", `{"tag":"t"}`))
			}
			return steps
		}
		create := func(d action.Draft) error {
			a, err := b.actions.Create(t.Context(), b.who, string(b.ep.ID), d)
			if err == nil {
				must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), a.ID))
			}
			return err
		}
		for _, c := range []struct {
			plan  hookglass.Plan
			sub   hookglass.Subscription
			steps []action.StepDraft
			want  hookglass.Code // "": it is taken
		}{
			{hookglass.PlanFree, hookglass.SubscriptionActive, nil, hookglass.CodePlanRequired},
			{hookglass.PlanPro, hookglass.SubscriptionNone, tag(5), ""},
			{hookglass.PlanPro, hookglass.SubscriptionNone, tag(6), hookglass.CodePlanRequired},
			{hookglass.PlanTeam, hookglass.SubscriptionNone, tag(10), ""},
			{hookglass.PlanTeam, hookglass.SubscriptionNone, tag(11), hookglass.CodePlanRequired},
			{hookglass.PlanBusiness, hookglass.SubscriptionNone, tag(20), ""},
			{hookglass.PlanBusiness, hookglass.SubscriptionNone, tag(21), hookglass.CodePlanRequired},
			{hookglass.PlanPro, hookglass.SubscriptionTrialing, []action.StepDraft{step("forward", "F", `{"url":"https://a.example.com"}`)}, hookglass.CodeSubscriptionRequired},
			{hookglass.PlanTeam, hookglass.SubscriptionActive, []action.StepDraft{step("transform", "T", `{"source":"request","operations":[{"op":"select","path":""}]}`)}, hookglass.CodePlanRequired},
			{hookglass.PlanTeam, hookglass.SubscriptionActive, []action.StepDraft{step("http_request", "R", `{"url":"https://a.example.com"}`)}, hookglass.CodePlanRequired},
			{hookglass.PlanBusiness, hookglass.SubscriptionTrialing, []action.StepDraft{step("http_request", "R", `{"url":"https://a.example.com"}`)}, hookglass.CodeSubscriptionRequired},
		} {
			b.plan(c.plan, c.sub)
			err := create(draft("Limited", c.steps...))
			if c.want == "" && err != nil || c.want != "" && !hookglass.Is(err, c.want) {
				t.Errorf("%s, %s, %d steps: %v, want %q", c.plan, c.sub, len(c.steps), err, c.want)
			}
		}
	})
}

// Fifty creations at once never pass a plan's limit (reliability, row 111).
func TestParallelCreationsKeepToTheLimit(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.plan(hookglass.PlanPro, hookglass.SubscriptionActive)
		var all sync.WaitGroup
		var mu sync.Mutex
		made := 0
		for range 50 {
			all.Go(func() {
				_, err := b.actions.Create(t.Context(), b.who, string(b.ep.ID), draft("Many"))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made++
				} else if !hookglass.Is(err, hookglass.CodePlanRequired) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if made != 3 {
			t.Errorf("%d were made, want 3", made)
		}
	})
}

// What lapses stays saved, can be renamed and switched off, but not reconfigured (spec, Actions rule 3).
func TestLapsedStepsCanNotBeReconfigured(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		forward := step("forward", "On", `{"url":"https://a.example.com"}`)
		a := b.create(draft("Lapsed", forward))
		b.plan(hookglass.PlanPro, hookglass.SubscriptionPastDue)
		ref, name, off := string(b.ep.ID), "Renamed", false
		update := func(d action.Draft) error {
			_, err := b.actions.Update(t.Context(), b.who, ref, a.ID, d)
			return err
		}
		same := []action.StepDraft{forward, step("tag", "T", `{"tag":"t"}`)}
		must(t, update(action.Draft{Name: &name, Steps: &same}))
		changed := []action.StepDraft{step("forward", "On", `{"url":"https://b.example.com"}`)}
		if err := update(action.Draft{Steps: &changed}); !hookglass.Is(err, hookglass.CodeSubscriptionRequired) {
			t.Errorf("reconfigured: %v", err)
		}
		b.plan(hookglass.PlanFree, hookglass.SubscriptionNone)
		if err := update(action.Draft{Name: &name}); !hookglass.Is(err, hookglass.CodePlanRequired) {
			t.Errorf("renamed on the free plan: %v", err)
		}
		must(t, update(action.Draft{Enabled: &off}))
		must(t, b.actions.Delete(t.Context(), b.who, ref, a.ID))

		b.plan(hookglass.PlanBusiness, hookglass.SubscriptionActive)
		reading := func(source, path, operator, value string) *[]action.StepDraft {
			return &[]action.StepDraft{step("tag", "T", `{"tag":"t"}`), step("tag", "U", `{"tag":"u"}`), step("tag", "V", `{"tag":"v"}`, on(source, path, operator, value))}
		}
		a = b.create(draft("Composed", *reading("steps.t", "/status", "equals", `"completed"`)...))
		b.plan(hookglass.PlanTeam, hookglass.SubscriptionActive)
		must(t, update(action.Draft{Steps: reading("steps.t", "/status", "equals", `"completed"`)}))
		for what, steps := range map[string]*[]action.StepDraft{
			"source": reading("steps.u", "/status", "equals", `"completed"`), "path": reading("steps.t", "/type", "equals", `"completed"`),
			"operator": reading("steps.t", "/status", "not_equals", `"completed"`), "value": reading("steps.t", "/status", "equals", `"failed"`),
		} {
			if err := update(action.Draft{Steps: steps}); !hookglass.Is(err, hookglass.CodePlanRequired) {
				t.Errorf("with another %s: %v", what, err)
			}
		}
	})
}

// An action that has more steps than the plan allows by now can be renamed; and what can be saved can be tried.
func TestWhatIsStoredBeyondThePlanCanBeTried(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.plan(hookglass.PlanBusiness, hookglass.SubscriptionActive)
		var many []action.StepDraft
		for i := range 6 {
			many = append(many, step("tag", fmt.Sprint("T", i), `{"tag":"t"}`))
		}
		a := b.create(draft("Many", many...))
		event := b.capture(`{}`)
		b.plan(hookglass.PlanPro, hookglass.SubscriptionActive)
		name, ref := "Renamed", string(b.ep.ID)
		for what, try := range map[string]func(action.Draft) error{
			"saved": func(d action.Draft) error { _, err := b.actions.Update(t.Context(), b.who, ref, a.ID, d); return err },
			"tried": func(d action.Draft) error {
				_, err := b.actions.Try(t.Context(), b.who, ref, a.ID, string(event.ID), d)
				return err
			},
			"backtested": func(d action.Draft) error {
				_, err := b.actions.Backtest(t.Context(), b.who, ref, a.ID, action.BacktestOf{Draft: &d})
				return err
			},
		} {
			if err := try(action.Draft{Name: &name}); err != nil {
				t.Errorf("%s without steps: %v", what, err)
			}
			if err := try(action.Draft{Steps: &many}); !hookglass.Is(err, hookglass.CodePlanRequired) {
				t.Errorf("%s with too many steps: %v", what, err)
			}
		}
	})
}

// Each field with each operator, through a definition that is stored.
func TestTriggersThroughTheService(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		present := map[string]string{
			"provider": "github", "event_type": "push", "signature_status": "verified", "http_method": "POST", "request_path": "/in",
			"content_type": "application/json", "has_tag": "red",
		}
		e := b.capture(body)
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.TagEvent(string(b.ep.ID), string(e.ID), "red")
			return err
		}))
		a := b.create(draft("Matrix"))
		for _, field := range hookglass.ConditionFields {
			value, there := present[field]
			part := "x"
			if there {
				part = value[1:3]
			}
			for _, c := range []struct {
				operator, value string
				want            bool
			}{
				{"equals", value, there}, {"equals", "other", false}, {"not_equals", "other", true}, {"not_equals", value, !there},
				{"contains", part, there}, {"contains", "zzz", false}, {"not_contains", "zzz", true}, {"not_contains", part, !there},
				{"matches", "^" + part[:1], false}, {"matches", ".+", there}, {"exists", "", there}, {"not_exists", "", !there},
			} {
				if c.value == "" && c.operator != "exists" && c.operator != "not_exists" {
					c.value = "nobody has this"
				}
				condition := action.ConditionDraft{Field: field, Operator: c.operator}
				if c.value != "" {
					condition.Value = &c.value
				}
				_, err := b.actions.Update(t.Context(), b.who, string(b.ep.ID), a.ID, action.Draft{Conditions: &[]action.ConditionDraft{condition}})
				must(t, err)
				p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
				must(t, err)
				if p.Trigger.Matched != c.want {
					t.Errorf("%s %s %q on %q: %v, want %v", field, c.operator, c.value, value, p.Trigger.Matched, c.want)
				}
			}
		}
	})
}

// What is sent is as long as a body of the API may be; others wait for the writer meanwhile, so none of it is read there
// and no more of it than could be taken.
func TestAVeryLongActionIsRefusedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("A", step("tag", "T", `{"tag":"x"}`)))
		same := slices.Repeat([]action.StepDraft{step("tag", "T", `{"tag":"x"}`)}, 50_000)
		empty := make([]action.StepDraft, 100_000)
		wordless := slices.Repeat([]action.ConditionDraft{{Field: "provider", Operator: "equals", Value: new(string)}}, 100_000)
		many := step("tag", "T", `{"tag":"x"}`)
		many.Conditions = make([]action.StepConditionDraft, 100_000)
		for name, c := range map[string]struct {
			change action.Draft
			code   hookglass.Code
		}{
			"steps of one name":    {action.Draft{Steps: &same}, hookglass.CodePlanRequired},
			"steps of nothing":     {action.Draft{Steps: &empty}, hookglass.CodeValidationFailed},
			"conditions":           {action.Draft{Conditions: &wordless}, hookglass.CodeValidationFailed},
			"conditions of a step": {action.Draft{Steps: &[]action.StepDraft{many}}, hookglass.CodeValidationFailed},
		} {
			var err error
			took := time.Hour
			for tries := 0; took > 5*time.Second && tries < 3; tries++ { // other programs may have the processor meanwhile
				began := time.Now()
				_, err = b.actions.Update(t.Context(), b.who, string(b.ep.ID), a.ID, c.change)
				took = time.Since(began)
			}
			if !hookglass.Is(err, c.code) || took > 5*time.Second {
				t.Errorf("%s: %.200v after %v, want %s", name, err, took, c.code)
			}
		}
	})
}
