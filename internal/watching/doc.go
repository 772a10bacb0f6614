// Package watching reads and watches an API server whose kinds come and go: its resources, their objects, and the
// events that enqueue parents.
//
// server.go is one API server as one manager sees it. It finds resources by their names (resource.go), holds informers
// of any kind that can be removed (informers.go, source.go), notices when a kind cannot be watched any more (ended.go,
// probe.go), and has a client that forgets what was served (renewed.go). resync.go enqueues without an event.
//
// What may not come in: hooks and related objects (package related), which controllers there are and whether they run
// (package hosting), what a pass does.
package watching
