package httpd

import "reflect"

// Form describes the JSON that a Go type accepts, to follow "must be" in an error. A type that unmarshals itself
// describes itself with a method of this name.
func Form(t reflect.Type) string {
	const other = "of another type"
	if t == nil {
		return other
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if own, ok := reflect.Zero(t).Interface().(interface{ Form() string }); ok {
		return own.Form()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return other
}
