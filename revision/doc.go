// Package revision is the pure core of a revision history: what a snapshot is, when two snapshots are the same, how a
// stored snapshot is named, in which order snapshots came, what one pass has to write to the log, and which snapshots
// may be forgotten.
//
// It implements the Controller History proposal (sections "API Objects", "Revision History", "Version Tracking" and
// "History Maintenance") and the equivalence rules R0 to R6 of cairn's design.
//
// The main types: [Target] describes the part of a parent that decides what its children look like; [Snapshot] is that
// part at one moment; [Revision] is one stored snapshot; [Resolve] compares a parent with its log and says what the log
// needs; [Prune] says which revisions may be deleted.
//
// What may not come in: a client, a clock, a goroutine, a logger, any other package of this module. Everything here is
// a function of its arguments, so everything here is tested by tables and properties, without fakes.
package revision
