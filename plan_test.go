package hookglass_test

import (
	"slices"
	"strings"
	"testing"

	"hookglass"
)

// Every account there can be: each plan, with each subscription, with and without a payment method.
func accounts() []hookglass.Account {
	var all []hookglass.Account
	for _, plan := range hookglass.Plans {
		for _, subscription := range hookglass.Subscriptions {
			for _, payment := range []bool{false, true} {
				all = append(all, hookglass.Account{Plan: plan, Subscription: subscription, PaymentMethod: payment})
			}
		}
	}
	return all
}

// TestEntitlements says for which of all accounts each right of the specification holds, and with which code
// it is refused to the others.
func TestEntitlements(t *testing.T) {
	const ok = hookglass.Code("")
	type account = hookglass.Account
	type entitlements = hookglass.Entitlements

	paying := func(a account) bool { return a.Subscription == hookglass.SubscriptionActive } // trials are not eligible
	on := func(plans ...hookglass.Plan) func(account) bool {
		return func(a account) bool { return slices.Contains(plans, a.Plan) }
	}
	for _, c := range []struct {
		name string // with the place in the specification
		ask  func(entitlements) error
		want func(account) hookglass.Code
	}{
		{"Actions 3: actions need Pro, Team or Business", entitlements.MayUseActions, func(a account) hookglass.Code {
			if on(hookglass.PlanPro, hookglass.PlanTeam, hookglass.PlanBusiness)(a) {
				return ok
			}
			return hookglass.CodePlanRequired
		}},
		{"Actions 3: forward steps need an active paid subscription", entitlements.MayForward, func(a account) hookglass.Code {
			if paying(a) {
				return ok
			}
			return hookglass.CodeSubscriptionRequired
		}},
		{"Actions 3: transform needs Business", entitlements.MayTransform, func(a account) hookglass.Code {
			if on(hookglass.PlanBusiness)(a) {
				return ok
			}
			return hookglass.CodePlanRequired
		}},
		{"Actions 3: http_request needs Business and an active paid subscription", entitlements.MayRequestHTTP, func(a account) hookglass.Code {
			switch {
			case !on(hookglass.PlanBusiness)(a):
				return hookglass.CodePlanRequired
			case !paying(a):
				return hookglass.CodeSubscriptionRequired
			}
			return ok
		}},
		{"Workspace action secrets: Business workspaces", entitlements.MayUseSecrets, func(a account) hookglass.Code {
			if on(hookglass.PlanBusiness)(a) {
				return ok
			}
			return hookglass.CodePlanRequired
		}},
		{"Replay 3 and 4: regenerate and resign need a payment method", entitlements.MayRegenerateOrResign, func(a account) hookglass.Code {
			if a.PaymentMethod {
				return ok
			}
			return hookglass.CodePaymentMethodRequired
		}},
		{"Signature configs: any provider on a paid plan", func(e entitlements) error { return e.MayConfigureSignature("stripe", "github") }, func(a account) hookglass.Code {
			if on(hookglass.PlanFree)(a) {
				return hookglass.CodePlanRequired
			}
			return ok
		}},
		{"Signature configs: on free, none without a provider-mode endpoint", func(e entitlements) error { return e.MayConfigureSignature("stripe", "") }, func(a account) hookglass.Code {
			if on(hookglass.PlanFree)(a) {
				return hookglass.CodePlanRequired
			}
			return ok
		}},
		{"Signature configs: on free, the endpoint's own provider", func(e entitlements) error { return e.MayConfigureSignature("stripe", "stripe") }, func(account) hookglass.Code {
			return ok
		}},
	} {
		for _, a := range accounts() {
			err, want := c.ask(a.Entitlements()), c.want(a)
			if want == ok && err != nil || want != ok && !hookglass.Is(err, want) {
				t.Errorf("%s: plan %s, subscription %s, payment method %t: got %v, want %q", c.name, a.Plan, a.Subscription, a.PaymentMethod, err, want)
			}
		}
	}
}

func TestWhatIsMissingIsSaidOfWhatWasAsked(t *testing.T) {
	rights := hookglass.Account{Plan: hookglass.PlanBusiness, Subscription: hookglass.SubscriptionTrialing}.Entitlements()
	for asked, err := range map[string]error{"Forwarding": rights.MayForward(), "HTTP Request steps": rights.MayRequestHTTP()} {
		if err == nil || !strings.Contains(err.Error(), asked) {
			t.Errorf("of %s it is said: %v", asked, err)
		}
	}
}

func TestPlanLimits(t *testing.T) {
	const unlimited = -1
	for plan, want := range map[hookglass.Plan]struct{ actions, steps int }{
		hookglass.PlanFree:     {0, 0},
		hookglass.PlanPro:      {3, 5},
		hookglass.PlanTeam:     {5, 10},
		hookglass.PlanBusiness: {unlimited, 20},
		"":                     {0, 0},
		"gold":                 {0, 0},
	} {
		e := hookglass.Account{Plan: plan, Subscription: hookglass.SubscriptionActive, PaymentMethod: true}.Entitlements()
		if e.ActionsPerEndpoint() != want.actions || e.StepsPerAction() != want.steps {
			t.Errorf("plan %q: %d actions of %d steps, want %d of %d", plan, e.ActionsPerEndpoint(), e.StepsPerAction(), want.actions, want.steps)
		}
	}
}

// A plan that does not exist, which only a damaged row can hold, has the rights of none.
func TestAnUnknownPlanHasNoRights(t *testing.T) {
	for _, plan := range []hookglass.Plan{"", "gold"} {
		e := hookglass.Account{Plan: plan}.Entitlements()
		for name, err := range map[string]error{
			"actions":    e.MayUseActions(),
			"transform":  e.MayTransform(),
			"compose":    e.MayCompose(),
			"secrets":    e.MayUseSecrets(),
			"signatures": e.MayConfigureSignature("stripe", "github"),
		} {
			if !hookglass.Is(err, hookglass.CodePlanRequired) {
				t.Errorf("plan %q: %s: %v", plan, name, err)
			}
		}
	}
}
