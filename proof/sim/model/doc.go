// Package model is an in-memory API server for simulations. It answers as kube-apiserver 1.37 with etcd does, one
// request at a time, the same every time, in microseconds.
//
//	s := model.New(model.Options{Seed: 1, Now: clock.Now})
//	answer := s.Do(model.Request{Verb: model.VerbCreate, Resource: pods, Namespace: "default", Object: pod})
//	for _, r := range s.Garbage() {          // what the garbage collector would do now
//		s.Do(r)
//	}
//	s.Events()                               // every change so far, by resource version
//	s.ListAt(pods, "default", 17)            // what a lagging cache would list
//	c := model.NewClient(s.Transport, scheme, model.BuiltIn())
//
// Defaults, conversions, validation and the rules of updates are not written here: they are the API server's own, from
// k8s.io/kubernetes. What is written here is what that code is embedded in: the store and its one counter of versions
// (store.go), the order of checks of each verb (create.go, update.go, patch.go, delete.go), the rules of custom
// resources (custom.go), the garbage collector as a function of the state (garbage.go), and a client (client.go). An
// entry in the table of kinds (builtin.go, Custom) adds a kind.
//
// The model is checked against the real thing: TestTheModelAnswersAsTheServerDoes plays random requests to both and
// compares code, reason, causes, objects, and which write was one. Kinds of batch/v1 (Batch) are made in the same way,
// and are not compared: the real Job controller would take part.
//
// # Limits
//
// On purpose, the model has no
//   - admission plugins, so pods get no service account, tolerations or priority, and claims no finalizer, and owner
//     references need no permission;
//   - managed fields and server-side apply. A write to the real server may change nothing but managed fields, and then
//     has a new resource version there and none here;
//   - schemas of custom resources other than two functions, and no pruning;
//   - watches: Events is what they would show, and whoever simulates them decides when;
//   - pagination, subresources other than status and pods/binding, and warnings;
//   - namespaces as objects. EndNamespace makes one refuse creation; who ends it has to delete what is in it;
//   - other controllers. A claim that is deleted goes at once, a pod that is bound waits for somebody to play its
//     kubelet.
//
// What may not come in: goroutines, the wall clock, chance that is not seeded, and rules of a kind that the API server
// has in a package of its own.
package model
