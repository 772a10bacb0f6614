// Package content writes what a revision holds for people to read: as YAML, as a unified diff or as a list of changes,
// with secrets masked, and says which privileges pods would gain. It is pure: everything is a function of two contents.
//
// changes.go compares two contents field by field, diff.go line by line, mask.go hides secrets in either, and
// privilege.go looks for what pods may do.
//
// What may not come in: a client, a history, a decision about an undo.
package content
