package hookglass

// Plan is what an account has bought; self-hosted accounts start with business.
type Plan string

// The plans.
const (
	PlanFree     Plan = "free"
	PlanPro      Plan = "pro"
	PlanTeam     Plan = "team"
	PlanBusiness Plan = "business"
)

// Subscription is the state of an account's payments.
type Subscription string

// The subscription states.
const (
	SubscriptionNone     Subscription = "none"
	SubscriptionTrialing Subscription = "trialing"
	SubscriptionActive   Subscription = "active"
	SubscriptionPastDue  Subscription = "past_due"
	SubscriptionCanceled Subscription = "canceled"
)

// Plans and Subscriptions list what may be set.
var (
	Plans         = []Plan{PlanFree, PlanPro, PlanTeam, PlanBusiness}
	Subscriptions = []Subscription{SubscriptionNone, SubscriptionTrialing, SubscriptionActive, SubscriptionPastDue, SubscriptionCanceled}
)

// Entitlements answers what an account may do. Each rule of the specification about plans and payment ("Plan limits",
// Actions rule 3, Replay rules 3 and 4) is here and nowhere else.
type Entitlements struct {
	plan         Plan
	subscription Subscription
	payment      bool
}

// Entitlements returns what the account is entitled to.
func (a Account) Entitlements() Entitlements {
	return Entitlements{a.Plan, a.Subscription, a.PaymentMethod}
}

// paid reports whether the plan is above free. An unknown plan is not.
func (e Entitlements) paid() bool {
	return e.plan == PlanPro || e.plan == PlanTeam || e.plan == PlanBusiness
}

// ActionsPerEndpoint returns how many actions an endpoint may have; -1 is no limit.
func (e Entitlements) ActionsPerEndpoint() int {
	switch e.plan {
	case PlanPro:
		return 3
	case PlanTeam:
		return 5
	case PlanBusiness:
		return -1
	}
	return 0
}

// StepsPerAction returns how many steps an action may have.
func (e Entitlements) StepsPerAction() int {
	switch e.plan {
	case PlanPro:
		return 5
	case PlanTeam:
		return 10
	case PlanBusiness:
		return 20
	}
	return 0
}

// MayUseActions answers plan_required on the free plan.
func (e Entitlements) MayUseActions() error {
	if !e.paid() {
		return Errorf(CodePlanRequired, "Actions need a Pro, Team or Business plan.")
	}
	return nil
}

// MayForward answers subscription_required unless a paid subscription is active; a trial is not enough.
func (e Entitlements) MayForward() error {
	if e.subscription != SubscriptionActive {
		return Errorf(CodeSubscriptionRequired, "Forwarding needs an active paid subscription.")
	}
	return nil
}

// MayTransform answers plan_required below Business.
func (e Entitlements) MayTransform() error {
	if e.plan != PlanBusiness {
		return Errorf(CodePlanRequired, "Transform steps need the Business plan.")
	}
	return nil
}

// MayCompose answers plan_required below Business (spec, "Plan limits"). It is for steps that use the result or the
// status of an earlier step.
func (e Entitlements) MayCompose() error {
	if e.plan != PlanBusiness {
		return Errorf(CodePlanRequired, "Steps that look at earlier steps need the Business plan.")
	}
	return nil
}

// MayRequestHTTP answers plan_required below Business and subscription_required without an active subscription.
func (e Entitlements) MayRequestHTTP() error {
	if e.plan != PlanBusiness {
		return Errorf(CodePlanRequired, "HTTP Request steps need the Business plan.")
	}
	if e.subscription != SubscriptionActive {
		return Errorf(CodeSubscriptionRequired, "HTTP Request steps need an active paid subscription.")
	}
	return nil
}

// MayUseSecrets answers plan_required below Business (spec, "Workspace action secrets").
func (e Entitlements) MayUseSecrets() error {
	if e.plan != PlanBusiness {
		return Errorf(CodePlanRequired, "Action secrets need the Business plan.")
	}
	return nil
}

// MayRegenerateOrResign answers payment_method_required without a payment method (spec, Replay rules 3 and 4).
func (e Entitlements) MayRegenerateOrResign() error {
	if !e.payment {
		return Errorf(CodePaymentMethodRequired, "identity_mode regenerate and signature_mode resign need a payment method on the account.")
	}
	return nil
}

// MayConfigureSignature answers plan_required when a free account configures a provider other than
// the one its endpoint is set to (spec, "Signature configs", plan rule). A Team account has what Pro has.
func (e Entitlements) MayConfigureSignature(provider, endpointProvider string) error {
	if !e.paid() && (endpointProvider == "" || provider != endpointProvider) {
		return Errorf(CodePlanRequired, "On the free plan the provider of a signature config must be the endpoint's provider.")
	}
	return nil
}
