// Package related finds the related objects of a parent, which a customize hook chooses, and enqueues the parent when
// one of them changes.
//
// [Objects] is what a pass asks (related.go). kinds.go watches their kinds, interests.go knows which parents an object
// is related to, and rules.go checks one rule of a hook.
//
// What may not come in: what the sync hook is asked, and any write.
package related
