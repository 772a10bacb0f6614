// Package status says whether what an object asks for has come about, how far its rollout is, and what it waits for.
//
// status.go counts the children by revision, and plain.go those of objects without a history. settled.go makes a
// verdict of it: where one of our controllers reports, by its conditions, elsewhere by what the object's own controller
// reports (reported.go). serving.go says why a child is not available, refused.go why one does not exist.
//
// What may not come in: a write, what a controller will do next, a clock, printing.
package status
