// Package host is what the controllers that CompositeControllers and DecoratorControllers describe share, made once for
// a manager: environment.go, with events (recorder.go) and hooks (hooks.go). declared.go checks the resources that they
// name.
//
// What may not come in: a decision about children, revisions or a parent's status; whether a controller runs (package
// hosting).
package host
