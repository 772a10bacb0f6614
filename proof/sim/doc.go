// Package sim runs controllers in simulated clusters: a seed makes a world, a user who edits, undoes, deletes and
// breaks things at random, and every choice of what happens next. Two runs of a seed have the same history, byte for
// byte.
//
// The controllers are real, with their real goroutines, work queues and controller-runtime, in a bubble of
// testing/synctest, where time is simulated. They see a [ctrl.Manager] of ours (manager.go), caches that the scheduler
// fills (informer.go, cache.go) and a client whose requests wait until the scheduler serves them (process.go,
// serve.go), against the API server of package model. Controllers that people describe run without what starts them in
// a manager (hosted.go); they have their objects without Go types (view.go), and the world plays their hook (hook.go).
//
// step.go is the scheduler, cluster.go the machines and kubelets, person.go the user, calm.go how a world comes to
// rest. Before that, a world that has a trouble which lasts (trouble.go, denial.go, injection.go, guards.go) has to
// live with it for a while (endure.go): half of the worlds have one, chosen from a stream of its own, so that a world
// without is what it was.
//
// CronJobs live by a clock (clocks.go): those of managers are off, jump, and differ; jobs.go stands in for who runs
// Jobs. Such a world comes to rest when the clocks stop.
//
// At rest, package check judges the history, by what each pass could know: knowledge.go takes that down. stage.go lets
// a scenario direct a world instead of chance.
//
// A controller is added by describing what users do to its kind (kind.go): daemonset.go is an example, and workload.go
// has what they do to every pod template.
//
// What may not come in: chance that does not come from the seed, a real clock, and anything about a kind outside its
// description.
package sim
