// Package children compares the children of a parent with what is wanted of them, and makes, changes, replaces and deletes
// them: for composite parents and for decorated objects, whatever the kind, by merge patches or by server-side apply.
//
// Three rules hold for all of it. Refused is not different: a child about which the API server says nothing is unknown, stays
// as it is, and is asked about again. What serves is not deleted on a guess: before a child is deleted to be made again, a
// dry run shows that it can be. And a child that cannot be made is in the way of no other.
//
// What may not come in: who is to be changed when, revisions, questions to hooks, the parent itself.
package children
