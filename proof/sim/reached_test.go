package sim

import "slices"

// This file says which situations the seeds of a world must have come to. A fault that is never injected, or a user who
// never does something, is a defect of the simulation.

// many is from how many seeds on a world must have come to what is seldom.
const many = 1000

var (
	// often is what the cut of make test comes to, in every world.
	often = []string{
		"bookmarks", "conflicts", "errors of passes", "events", "garbage collected", "kills between requests", "late requests",
		"nodes change", "nodes come", "nodes go", "notices", "old lists", "outages", "relists", "resyncs", "starts", "two managers",
		"fault 409 conflict", "fault 429 without Retry-After", "fault 500", "fault hang", "fault kill after", "fault kill before",
		"fault request lost", "fault response lost",
		"user: create", "user: delete Background", "user: delete Foreground", "user: delete Orphan", "user: delete a child",
		"user: plant a child", "user: relabel a child", "troubles that lasted",
	}
	// seldom is what many seeds come to, in every world.
	seldom = []string{
		"trouble deny", "trouble quota", "trouble slow", "trouble mutate", "trouble clocks", "looked whether all is prompt",
		"AlreadyExists", "managers that gave up",
		"fault outage 403", "fault outage 422", "fault outage 429", "fault outage 500", "user: disown a child",
	}
	// told is what the controllers of workloads say; Metacontroller says nothing of the kind, nor do its controllers here.
	told         = []string{"event SuccessfulCreate", "event SuccessfulDelete"}
	seldomFailed = []string{"event RecordFailed"}
	// revised and seldomRevised are the same for worlds with kinds that have revisions, and inEach for single worlds.
	revised       = []string{"event RolledBack", "user: delete a revision", "user: undo"}
	seldomRevised = []string{"trouble guards", "user: delete a revision in the foreground", "user: disown a revision", "user: copy a revision", "user: copy a revision with its owner"}
	inEach        = map[string][]string{
		"daemonset":   {"event FailedDaemonPod", "user: edit where it runs"},
		"statefulset": {"event FailedCreate", "user: edit the first ordinal", "user: edit the scale", "user: edit what becomes of claims"},
		"replicaset":  {"event FailedCreate", "user: edit the scale", "user: tend a child"},
		"cronjob": {
			"clocks jump", "down for ten schedules", "jobs end", "jobs expire", "event JobAlreadyActive", "event MissSchedule",
			"event MissingJob", "event SawCompletedJob", "event InvalidSchedule", "event LastScheduleTimeInFuture",
			"user: edit the schedule", "user: edit whether it is suspended",
		},
		"composite": {
			"event SyncError", "event RolloutWaiting", "event OnLatestRevision", "user: edit the scale", "user: edit what no revision holds",
			"fault hook: 500", "fault hook: a child of another kind", "fault hook: asked to come later", "fault hook: breaks off",
			"fault hook: no JSON", "fault hook: no children", "fault hook: no connection",
		},
		"failing": {
			"event ProgressDeadlineExceeded", "event NotRolledBack", "event InvalidProgressDeadline",
			"event AutomaticRollback", "user: edit what works to a broken image",
		},
		"failing-composite": {"event ProgressDeadlineExceeded", "event NotRolledBack"},
		"mixed":             {"event FailedDaemonPod", "user: edit the scale", "user: tend a child"},
	}
)

// reached are the situations that so many seeds of the world must have come to. Fewer than the cut say nothing.
func (w World) reached(seeds uint64) []string {
	if seeds < fewSeeds*w.Share/100 {
		return nil
	}
	out := slices.Concat(often, inEach[w.Name])
	history := slices.ContainsFunc(w.Kinds, Kind.hasRevisions)
	if !slices.ContainsFunc(w.Kinds, func(k Kind) bool { return len(k.Hosted) > 0 }) {
		out = append(out, told...)
		if seeds >= many && history {
			out = append(out, seldomFailed...)
		}
	}
	if history {
		out = append(out, revised...)
	}
	if seeds >= many {
		out = append(out, seldom...)
	}
	if seeds >= many && history {
		out = append(out, seldomRevised...)
	}
	if seeds >= many && w.rejectable() {
		out = append(out, "trouble reject", "looked whether a mend is prompt")
	}
	if slices.ContainsFunc(w.Kinds, func(k Kind) bool { return len(k.Releases) > 0 }) {
		out = slices.DeleteFunc(out, func(what string) bool { return what == "two managers" })
	}
	return out
}

// rejectable reports whether kubelets may reject the children of a world.
func (w World) rejectable() bool {
	return (&trouble{}).makeRejection(&world{kinds: w.Kinds})
}
