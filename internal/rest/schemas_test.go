package rest_test

import (
	"context"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/job"
	"hookglass/internal/store"
)

// workSchemas adds what arrived to the schemas that are kept, until nothing waits.
func (s *site) workSchemas() {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	tasks := job.NewTasks(s.db, job.TaskConfig{Kind: store.TaskSchema, Places: 4, PerTenant: 4, Work: s.deps.Drift.Work, Log: slog.New(slog.DiscardHandler)})
	go func() { ended <- tasks.Run(ctx) }()
	for waits := true; waits && s.t.Context().Err() == nil; {
		err := s.db.View(ctx, hookglass.System, func(v *store.View) error {
			queues, err := v.TaskQueues(store.TaskSchema)
			waits = len(queues) > 0
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		s.t.Fatal(err)
	}
}

func TestSchemasAreKeptAndTheirDriftTriggersAnAlert(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"schema_tracking":true`)
		at := "/endpoints/" + e.ID
		shopify := func(body string) {
			s.arriveAt(e.ID, time.Now(), body, "X-Shopify-Topic", "orders/create", "X-Shopify-Webhook-Id", "w", "X-Shopify-Shop-Domain", "a.myshopify.com", "X-Shopify-Hmac-Sha256", "x", "Content-Type", "application/json")
		}
		shopify(`{"id":1,"total":"9.90","customer":{"email":"jane@example.com"}}`)
		shopify(`{"id":2,"total":"1.00","customer":{"email":"joe@example.com"},"note":null}`)
		s.arriveAt(e.ID, time.Now(), `plain`)
		s.workSchemas()

		var list api.SchemaList
		s.want(200, "GET", at+"/schemas", "", &list)
		if len(list.Data) != 1 || list.Meta.Source != "tracked" || !list.Meta.Tracking || list.Data[0].Events != 2 || *list.Data[0].EventType != "orders/create" || list.Data[0].Provider != "shopify" || list.Data[0].Baseline {
			t.Fatalf("schemas %+v", list)
		}
		one := at + "/schemas/" + url.PathEscape("orders/create")
		var read api.One[api.Schema]
		s.want(200, "GET", one, "", &read)
		if got := string(read.Data.JSONSchema); got != `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"shopify orders/create","type":"object","properties":{"customer":{"type":"object","properties":{"email":{"type":"string","format":"email"}},"required":["email"]},"id":{"type":"integer"},"note":{"type":"null"},"total":{"type":"string"}},"required":["customer","id","total"]}` {
			t.Errorf("schema %s", got)
		}
		if len(read.Data.Fields) != 5 || read.Data.Fields[0].Pointer != "/customer" || read.Data.Fields[3].Present != 1 || read.Data.Fields[3].Of != 2 {
			t.Errorf("fields %+v", read.Data.Fields)
		}
		var code api.One[api.SchemaCode]
		s.want(200, "GET", one+"/types?lang=go", "", &code)
		if code.Data.Language != "go" || len(code.Data.Code) == 0 {
			t.Errorf("types %+v", code.Data)
		}
		s.want(422, "GET", one+"/types?lang=cobol", "", nil)
		s.want(404, "GET", at+"/schemas/orders", "", nil)
		s.want(404, "GET", at+"/schemas/-", "", nil)

		// Nothing departs before there is a baseline, and nothing after it until something does.
		var a api.One[api.Alert]
		s.want(201, "POST", at+"/alerts", `{"alert":{"name":"Drift","kind":"schema_drift","config":{"event_type":"orders/create"}}}`, &a)
		s.want(422, "POST", at+"/alerts", `{"alert":{"name":"Drift","kind":"schema_drift","config":{"window_minutes":5}}}`, nil)
		s.want(422, "POST", at+"/alerts", `{"alert":{"name":"Spike","kind":"missing_webhook","config":{"window_minutes":5,"event_type":"x"}}}`, nil)
		state := func() (string, []api.Incident) {
			t.Helper()
			if err := s.alerts.Evaluate(t.Context()); err != nil {
				t.Fatal(err)
			}
			var now api.One[api.Alert]
			s.want(200, "GET", at+"/alerts/"+a.Data.ID, "", &now)
			var incidents api.List[api.Incident]
			s.want(200, "GET", at+"/alerts/"+a.Data.ID+"/incidents", "", &incidents)
			return now.Data.State, incidents.Data
		}
		var drift api.One[api.SchemaDrifts]
		s.want(200, "GET", one+"/drift", "", &drift)
		if drift.Data.Baseline || len(drift.Data.Drifts) != 0 {
			t.Errorf("without a baseline: %+v", drift.Data)
		}
		s.want(200, "POST", one+"/accept", "", &read)
		if !read.Data.Baseline || read.Data.AcceptedAt == nil || string(read.Data.Accepted) != string(read.Data.JSONSchema) {
			t.Errorf("accepted %+v", read.Data)
		}
		shopify(`{"id":3,"total":"2.00","customer":{"email":"jim@example.com"}}`)
		s.workSchemas()
		if now, _ := state(); now != "ok" {
			t.Errorf("the alert is %s though nothing departs", now)
		}
		shopify(`{"id":"gid-4","total":"2.00","customer":{"email":"secret@example.com"},"tax":[1]}`)
		shopify(`{"id":"gid-5","total":"2.00"}`)
		s.workSchemas()
		s.want(200, "GET", one+"/drift", "", &drift)
		if drift.Data.Events != 3 || len(drift.Data.Drifts) != 3 {
			t.Fatalf("drift %+v", drift.Data)
		}
		for i, want := range []struct {
			kind, pointer string
			count         int64
		}{{"now_optional", "/customer", 1}, {"type_changed", "/id", 2}, {"added", "/tax", 1}} {
			if d := drift.Data.Drifts[i]; d.Kind != want.kind || d.Pointer != want.pointer || d.Count != want.count || d.FirstSeen == "" || d.Message == "" {
				t.Errorf("drift %d is %+v, want %+v", i, d, want)
			}
		}
		now, incidents := state()
		if now != "triggered" || len(incidents) != 1 || incidents[0].Summary != "The schema of orders/create (shopify) has changed: /customer is not always there any more; /id is string where it was integer; /tax is new (array)." || incidents[0].RequestID == nil {
			t.Errorf("the alert is %s, %+v", now, incidents)
		}
		if now, incidents = state(); now != "triggered" || len(incidents) != 1 {
			t.Errorf("judged again it is %s with %d incidents", now, len(incidents))
		}
		var events api.List[api.Activity]
		s.want(200, "GET", "/events", "", &events)
		triggered := 0
		for _, e := range events.Data {
			if e.Type == "alert.triggered" {
				triggered++
			}
		}
		if triggered != 1 {
			t.Errorf("%d lines in the activity feed", triggered)
		}

		s.want(200, "POST", one+"/accept", "", &read)
		if now, incidents = state(); now != "ok" || incidents[0].ResolvedAt == nil {
			t.Errorf("after it was accepted the alert is %s, %+v", now, incidents)
		}
		s.want(200, "DELETE", one, "", nil)
		s.want(200, "GET", one, "", &read)
		if read.Data.Baseline || read.Data.Source != "sample" {
			t.Errorf("after it was forgotten: %+v", read.Data)
		}
		s.want(404, "DELETE", one, "", nil)
	})
}

func TestSchemasAreInferredWhenTheyAreAskedForWhereNoneAreKept(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		at := "/endpoints/" + e.ID
		for _, body := range []string{`{"a":1}`, `{"a":2,"b":"x"}`, `[1]`} {
			s.arriveAt(e.ID, time.Now(), body, "Content-Type", "application/json")
		}
		var list api.SchemaList
		s.want(200, "GET", at+"/schemas?sample=2", "", &list)
		if len(list.Data) != 1 || list.Meta.Source != "sample" || list.Meta.Tracking || list.Meta.Events != 2 || list.Data[0].EventType != nil || list.Data[0].Events != 2 {
			t.Fatalf("schemas %+v", list)
		}
		var read api.One[api.Schema]
		s.want(200, "GET", at+"/schemas/-", "", &read)
		if read.Data.Events != 3 || read.Data.Source != "sample" {
			t.Errorf("schema %+v", read.Data)
		}
		s.want(409, "POST", at+"/schemas/-/accept", "", nil)
		s.want(404, "DELETE", at+"/schemas/-", "", nil)
		// What arrived before tracking began can be accepted at once.
		s.want(200, "PATCH", at, `{"endpoint":{"schema_tracking":true}}`, nil)
		s.want(200, "POST", at+"/schemas/-/accept", "", &read)
		if !read.Data.Baseline || read.Data.Source != "tracked" {
			t.Errorf("accepted %+v", read.Data)
		}
		for _, wrong := range []string{"sample=0", "sample=2001", "sample=x"} {
			s.want(422, "GET", at+"/schemas?"+wrong, "", nil)
		}
	})
}
