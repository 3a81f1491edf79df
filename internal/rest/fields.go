package rest

import (
	"fmt"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/draft"
)

// given is [draft.Given].
func given[T any](faults *[]hookglass.FieldError, field string, o api.Optional[T], nullable bool) *T {
	return draft.Given(faults, field, o, nullable)
}

// or returns the value of a field, or the zero value.
func or[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

// orNull returns a member that is null when it is zero.
func orNull[T comparable](v T) *T {
	var nothing T
	if v == nothing {
		return nil
	}
	return &v
}

// howMany returns the limit given in a body, from 1 to most, or the default otherwise.
func howMany(faults *[]hookglass.FieldError, limit api.Optional[int64], otherwise, most int64) int64 {
	switch {
	case !limit.Set:
		return otherwise
	case limit.Null:
		*faults = append(*faults, hookglass.FieldError{Field: "limit", Message: "may not be null"})
	case limit.Value < 1 || limit.Value > most:
		*faults = append(*faults, hookglass.FieldError{Field: "limit", Message: fmt.Sprintf("must be 1 to %d", most)})
	}
	return limit.Value
}

// workspaceOf returns the workspace in which to create something; null means the default one.
func workspaceOf(faults *[]hookglass.FieldError, field string, o api.Optional[int64]) *int64 {
	id := given(faults, field, o, true)
	if id == nil || o.Null {
		return nil
	}
	if *id <= 0 {
		*faults = append(*faults, hookglass.FieldError{Field: field, Message: "is no workspace of yours"})
	}
	return id
}

func failureOf(f *hookglass.Failure) *api.DeliveryFailure {
	if f == nil {
		return nil
	}
	return &api.DeliveryFailure{Code: f.Code, Message: f.Message}
}
