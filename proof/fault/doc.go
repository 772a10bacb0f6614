// Package fault makes the requests of a controller manager fail on purpose, against a real API server, and runs a
// scenario once for every write and every way in which that write can fail.
//
// It has two halves. An [Injector] sits in the transport of a manager (rest.Config.Wrap): it counts the requests that
// change something, acts on those that its [Plan] names, and can hold, cut or rewind what the manager reads. A [Sweep]
// runs a [Scenario] without faults to learn how many writes it takes, and then again for every write and every [Mode].
// All runs are recorded by one clean client and judged by package check at every resource version, each in the
// namespace that is its own.
//
//	in := fault.New(ctx, fault.Plan{Faults: []fault.Fault{{At: 3, Mode: fault.ResponseLost}}})
//	process := in.Start(ctx)
//	err := manager.Run(process.Context(), manager.Options{Config: process.Config(cfg), ...})
//
// # What is counted
//
// Creates, updates, patches and deletes. Dry runs, events, leases and reviews of tokens and access are not counted and
// never fail by count: they change nothing that a controller's promises are about. A [Plan] may count fewer. In a sweep
// events do not even reach the API server (see [WithoutEvents]).
//
// # What is counted without a sweep
//
// Some tests are about all kinds at once and need neither a sweep nor a recording: what admission does to controllers,
// how many requests a failure that lasts costs, and what an outage of the API server leaves behind. They have a lab
// (lab_test.go): a namespace with a parent of each kind, served by cairn or by upstream's controllers, and every
// request of theirs in the log of an [Injector].
//
// # What is not here
//
// No promise is written down in this room: package check knows them. What needs a model instead of an API server
// (events out of order, a clock that runs wild) belongs into the simulation. No controller is named outside of the
// tests: a new one gets a file beside daemonset_test.go with a scenario and its refusals, and a line in subjects.
package fault
