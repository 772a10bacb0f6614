// Package verify finds what is wrong with revisions and with what belongs to them, and puts right what can be put right
// without knowing more.
//
// verifyread.go reads the revisions of one parent or of a namespace, verify.go judges by what was read, and repair.go
// carries one fix out, with the UID and the version that were judged as preconditions.
//
// What may not come in: a fix that a person has not seen, a decision of a controller, printing.
package verify
