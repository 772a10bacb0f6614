// Package scenario is the vocabulary in which a person says what happened to a cluster, so that a bug report is a file
// and the file is a test.
//
//	# kubernetes#111280: the revision that is gone back to exists twice.
//
//	controllers daemonset
//
//	nodes 3
//	create daemonset web image=app:1
//	settle
//	edit daemonset web image=app:2
//	settle
//	plant revision web-twin of daemonset web revision=1 number=3
//	edit daemonset web image=app:1
//	settle
//	expect 3 pods of web image=app:1 ready=true
//
// Put such a file into testdata. It is played in the simulation and on a real API server (package cluster), and after
// the last step package check looks at every write of it: a script asserts only what is special about it.
//
// # Lines
//
// A line is a verb, words, and options key=value. A # begins a comment; the comment at the top says which bug or fault
// the script is about. A word with spaces stands in "quotes"; one that begins with { is JSON and goes on to the end of
// the line. Before the first step stand the headers:
//
//	controllers NAME [NAME...]  what the managers run
//	seed NUMBER                 chooses the order of things in the simulation
//	only STAGE because REASON   for a script that only the simulation, or only the sandbox, can play
//
// After the lines come sections, as in any txtar file: manifests for apply, and the histories that are compared
// (simulation.history, sandbox.history), which go test -update writes.
//
// # Objects
//
// A KIND is a word of the table in package kinds (daemonset, revision, pod, ...), or resource.group for any other
// (catsets.example.com). An OBJECT is one of
//
//	KIND NAME                   daemonset web
//	KIND of PARENT [on NODE]    pod of web on node-1: by its ControllerRef, which names a web of any kind
//	revision NUMBER of PARENT   revision 2 of web
//
// An OPTION of create and edit is one that the table has for the kind (image, replicas, ...), or a path:
// spec.template.spec.hostNetwork=true, metadata.labels[a.b/c]=d. A single - takes a field away. A step with a word that
// nobody knows is refused with all that there are. In the sandbox an image with "broken" in it never starts.
//
// # What the user does
//
//	create KIND NAME [OPTION=VALUE...]
//	create {JSON}
//	apply SECTION
//	edit OBJECT OPTION=VALUE...
//	patch OBJECT {JSON}
//	relabel OBJECT LABEL=VALUE...
//	scale OBJECT to NUMBER
//	undo KIND NAME [to=NUMBER|REVISION]
//	delete OBJECT [cascade=background|foreground|orphan|unsaid] [grace=SECONDS]
//	plant pod NAME of KIND PARENT [on NODE] [image=IMAGE] [revision=NUMBER|REVISION] [place=PLACE] [owner=none|KIND/NAME]
//	plant revision NAME of KIND PARENT revision=NUMBER|REVISION number=NUMBER [hash=HASH] [owner=none|KIND/NAME]
//
// Patch is a JSON merge patch. A cascade that is unsaid leaves it to the API server. Undo does what kubectl rollout
// undo does. A REVISION is the name of one. Plant makes what the controller would have made, by somebody else's hand:
// an orphan pod of the parent's template, with the hash of a revision if one is given; or a copy of that revision with
// another number, whose hash is its name (hash=- for none), and which belongs to the parent unless owner says
// otherwise.
//
// The random user of package sim does nothing that cannot be said in these lines: its trace quotes them.
//
// # What the cluster does
//
//	nodes NUMBER                                           node-0, node-1, ...
//	pod POD ready|unready|failed|succeeded|stuck|gone      pod of web on node-1 failed
//	settle                                                 until nobody has anything left to do
//	remember MOMENT                                        for since= and for rewind
//	start manager [NUMBER]
//	kill manager [NUMBER]
//
// Manager 1 starts by itself before the first step that is not about nodes; there may be a second one. A stuck pod goes
// on terminating until it is gone.
//
// # What goes wrong
//
//	lose request|response of VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER] [unseen=true]
//	crash before|after VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER] [stale=true]
//	conflict on VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER]
//	throttle VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER]
//	reject VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER]
//	fail VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER]
//	hang VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER]
//	forbid VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER] [status=CODE]
//	allow VERB KIND[/SUBRESOURCE] [manager=NUMBER]
//	hold KIND [manager=NUMBER]
//	release KIND [manager=NUMBER]
//	cut KIND [manager=NUMBER]
//	rewind KIND to MOMENT [manager=NUMBER]
//
// VERB is create, update, patch, delete or *. The first six make the manager's NUMBER-th such request from now on fail
// (the next one, without a number), and times as many: lost on the way, a process that dies, 409, 429 with and without
// Retry-After, 500, no answer. Unseen keeps the effect from the caches as well until the request is repeated, and stale
// lets the next life begin in the past. Forbid answers 403, or another status, until allow. Hold keeps watch events
// from the manager until release; cut breaks its watches with 410, so that it lists again; rewind answers its next list
// as of a moment, so kill it first.
//
// # What must be so
//
//	wait CONDITION
//	expect CONDITION
//
// Wait waits, expect looks once. A CONDITION is one of
//
//	NUMBER|no KIND [of PARENT [on NODE]] [FIELD=VALUE...]   3 pods of web image=app:2 ready=true
//	revisions of PARENT NUMBER=IMAGE...                      the whole history: revisions of web 2=app:2 3=app:1
//	condition TYPE of OBJECT [FIELD=VALUE...]                condition Updated of daemonset web status=False
//	OBJECT [FIELD=VALUE...]                                  daemonset web status.collisionCount=0
//	violations none|INVARIANT...                             expect only: what the checker finds in the end; none, if not said
//
// A FIELD is an OPTION, a path, or one of: image, node, number, owner, ready, revision (the number of the revision that
// a child says it came from), since (it was there at that moment) and terminating. What is missing equals 0, false,
// none and -. Objects that are going are not counted, unless terminating is asked for.
//
// # Adding a controller
//
// There is nothing to add here: a kind of package kinds has its word and its options, and one of check/parents can be
// judged.
//
// What may not come in: a fact about one controller in the verbs, a sleep, an assertion that package check can make.
package scenario
