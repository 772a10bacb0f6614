// Package apply brings a child to what a hook asked for without taking away what others wrote into it. It is
// Metacontroller's dynamic apply: a three-way merge of what is observed, what was applied last (kept in an annotation
// of the child) and what is desired, with list keys that are guessed from the content.
//
// Everything here is a function of its arguments and changes none of them. [Child] answers what a child should look
// like and whether that differs; whether the difference is written in place, by deleting and creating, or not at all,
// is the caller's to decide. [Served] is how a caller says what the API server makes of a desired child, so that
// defaults and admission are not taken for a difference for ever. [Memo] remembers results, so that a child that did
// not change costs no JSON.
//
// What may not come in: a client, a clock, and any decision about revisions, budgets or ownership.
package apply
