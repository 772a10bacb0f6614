// Package children compares the children of a parent with their desired state, and creates, changes, replaces and
// deletes them: for composite parents and for decorated objects, whatever the kind, by merge patches or by server-side
// apply.
//
// Three rules hold for all of it. Refused is not different: a child that the API server gives no answer about is
// unknown, stays as it is, and is asked about again. A child that may be in use is not deleted on a guess: before it is
// deleted to be recreated, a dry run shows that this will work. And a child that cannot be created does not stop the
// others.
//
// What may not come in: who is to be changed when, revisions, questions to hooks, the parent itself.
package children
