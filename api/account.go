package api

import "hookglass"

// Verification is the answer of GET /auth/verify: the token's user, both at the described top level and in the envelope
// that other clients read.
type Verification struct {
	Identity
	Data Identity `json:"data"`
}

// Identity is a user in an account.
type Identity struct {
	User    User    `json:"user"`
	Account Account `json:"account"`
}

// User is a person who can sign in.
type User struct {
	ID    int64  `json:"id" example:"1"`
	Email string `json:"email" doc:"Any mailbox, also one of a host without a dot." example:"ada@example.com"`
	Name  string `json:"name" example:"Ada"`
}

// Account owns workspaces; a plan applies to an account.
type Account struct {
	ID   int64  `json:"id" example:"1"`
	Name string `json:"name" example:"Example Ltd"`
	Plan string `json:"plan" enum:"free,pro,team,business" example:"business"`
}

// FromIdentity converts a user and an account.
func FromIdentity(u hookglass.User, a hookglass.Account) Verification {
	id := Identity{
		User:    User{ID: u.ID, Email: u.Email, Name: u.Name},
		Account: Account{ID: a.ID, Name: a.Name, Plan: string(a.Plan)},
	}
	return Verification{Identity: id, Data: id}
}
