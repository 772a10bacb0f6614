// Package check finds out whether controllers kept their promises, from what happened to a cluster's objects.
//
// One clean client records every change of the objects involved (package recording). Within one etcd, resource versions
// are a total order, so the changes make one linear History. Check replays it and evaluates every rule at every
// resource version; Rest evaluates what holds only when nobody has anything left to do; Quiet says what was written
// between two points. What they find is a Violation, which a person can read: the invariant of the design, the object,
// a sentence, the few events that led there, and how to see it again.
//
//	r, err := recording.Record(ctx, client, namespaces, parents.DaemonSet().Scopes())
//	...                                  // run controllers, edit, break things
//	at, err := r.Sync(ctx)               // everything up to here is in the history
//	h, err := r.History()
//	violations := check.Check(h, parents.DaemonSet())
//	violations = append(violations, check.Rest(h, at, parents.DaemonSet())...)
//
// Who wrote what is in the history as well, once it was attached. Rules about deletes need it. Without it, they assume
// that every write was the controllers'. Histories may be judged at the same time, each by one goroutine.
//
// A Kind tells the rules what they must know about one kind of parent; the rules know none. Package parents fills them
// in. A rule shares no code with the controllers that it judges: where an oracle is needed, it is upstream's.
//
// # What nobody could know
//
// A controller reads from caches that lag, its requests are on their way for a while, a second manager may be active,
// and a response that was lost leaves it without knowledge of its own write. So a write breaks a promise only if it
// does so in every world that its author may have acted on (view.go):
//
//   - Entry.Pass says which pass of which process made a request. Its Views are how far the caches were when it began:
//     the author has seen all up to there. Without Views, it has seen its own writes to that resource by earlier
//     passes, because a pass waits for those. A delete that insists on a version has seen that version, unless it wrote
//     it itself. What a list past the caches told the pass it has seen; of children it has seen all up to the start of
//     its process, however old the first lists were, because before it acts it must look (Pass.Born).
//   - What others wrote after that may or may not be in the world. What the same process wrote is in all of them, even
//     if the response was lost: the deterministic names and orders of the design must make up for that.
//   - Without passes, the author must know all up to the last write for that parent, and, of anything but children,
//     all. That is strict, and right for controllers that nobody disturbs.
//
// Two managers promise less, because nothing joins their caches: P1 for one place and one revision, by names, and for
// one place at rest; H1, H5 and H2 at rest; and of R1, R2 and P3 what each of them could see. A budget may be spent
// twice if both look at different generations at the same moment. Two names for one place and revision are wrong,
// unless one of them was held before by a child that is gone: a name follows from the child that is replaced, which a
// process that just started, or one whose cache lags, may not have seen.
//
// H2 at rest is about what the parent asks for: its number is its own. Nothing else is ever renumbered, so that a tie
// stays between two others if one brought its number (an orphan that was adopted, a revision by somebody else), or if
// both were numbered at the same moment, each by a pass that had listed the revisions past its cache, and the spec
// changed before the next pass. Two managers, or a create that arrives after its controller gave it up, can do that.
//
// # Which rule checks what
//
// "Every write" is at every resource version, "rest" is in Rest.
//
//	H1  rest         (*rest).log           one revision for each snapshot; on the way a twin may exist until it is merged
//	H2  every write  (*step).numbers       above all numbers that its author must know; never falls
//	    rest         (*rest).log           unique, but for what is nobody's fault: (*rest).excused
//	H3  every write  (*step).liveRevision  none that a child came from, status names, or the spec asks for; error paths too
//	                 (*step).claimKept     nor does one that names its children stop naming one before another does
//	H4  every write  (*step).revisionData  data is what it was, whoever writes
//	H5  every write  (*step).firstName     where a hook is asked: the plain name, unless that is taken
//	                 (*step).collision     every name that the count passed over was held by somebody else. Needs names that
//	                                       follow from data; of other names it knows nothing
//	H6  every write  (*step).controllerRef the UID is that of a parent of that name
//	H7  every write  (*step).fenced        with reads, one of the pass showed what is recorded; without, nothing older than
//	                                       what was stamped or observed. Needs to know who wrote
//	H8  from-to      Quiet                 no write that changed anything. One that changed nothing has no event, and is in
//	                                       what Attach returns
//	H9  rest         (*rest).limit         on the way, and after errors, more may be kept
//	O1  every write  (*step).controllerRef one controller, and none is taken from another
//	O2  every write  (*step).looked        with reads, one of the pass showed the parent; with passes only, the parent was
//	                                       there after the orphan became what it is
//	O3  every write  (*step).afterTheEnd   nothing for a parent whose end its author has seen, or was told
//	O4  every write  (*step).foreign       nothing that is no parent's; (*step).claim for claims. Needs to know who wrote
//	O5  every write  (*step).controllerRef
//	P1  every write  (*step).onePerUnit
//	    rest         (*rest).reached       no place holds two; never two of one revision, whatever else is waited for
//	P2  every write  (*step).most, rest    (*rest).units
//	P3  every write  (*step).conformingStays, (*step).guardedStays, (*step).askedStays. Need to know who wrote
//	P4  every write  (*step).content       as the revision asks that it names; (*step).asAsked without revisions;
//	                                       (*step).madeAsAsked where a hook is asked
//	P5  every write  (*step).guarded; (*step).lostReturns where a hook is asked; (*step).comesBack where no status names the
//	                                       current revision
//	P6  every write  (*step).precondition  UID and version, of children and revisions. Needs to know who wrote
//	P7  every write  (*step).newName       a name of its own for what replaces a child, where the controllers give names
//	P8  every write  (*step).everAsked     no child from content that nobody has asked for, where all that was is known
//	R1  every write  (*step).unavailable   of the whole set; R2 (*step).surge
//	R3  every write  (*step).filled, (*step).emptied
//	R4  every write  (*step).completeMeans when it is first said, (*step).updateMeans; of composite parents it says as well
//	                                       that every child serves
//	    rest         (*rest).status        whenever it is said
//	R5  every write  (*step).beforeOthersEnd  where the strategy is Recreate
//	S1  every write  (*step).plausible     no counter negative or against another; refusals for statuses that were refused
//	    rest         (*rest).status        counters are what one counts; on the way they may be of another moment
//	S2  every write  (*step).observed
//	S3  every write  (*step).promoted      rest (*rest).units
//	W1  every write  (*step).afterAFailure needs the notes of who plays the hook
//	W2  every write  (*step).madeAsAsked   what the hook wants of the restored parent, asked again; (*step).hooked with notes
//	                 restored, sent        for the parent that the hook gets; need notes
//	C1  rest         (*rest).status        the last edit was observed
//	    rest         (*rest).reached       nothing is missing or old, unless a child is going or does not serve, or the
//	                                       budget is none; and no status denies it
//	    every write  (*step).claimsFollow  the owners of the claims of a deleted child are right. Needs to know who wrote
//	X1  every write  (*step).stamp         rest (*rest).leftovers
//	J1  every write  (*step).onceOnly      no run of a schedule for a time that the status, as it was read, calls served;
//	                 (*step).servedRises   what was served stays so
//	J2  every write  (*step).timedName     its name follows from a time of the schedule, which its author's clock has shown;
//	                 (*step).latestOnly    of what was missed, the latest. Needs that clock
//	J3  every write  (*step).beside        none beside another that its author knows of, where policy forbids or replaces it;
//	                 (*step).replacedRun   only runs of the schedule are deleted while they run, for the next one
//	J4  every write  (*step).surplusRun    finished ones are deleted beyond the limits, oldest first, once the status accounts
//	    rest         (*rest).scheduled     for them; no more than the limits stay
//	J5  every write  (*step).started       nothing for a parent that is suspended, or as an older spec asks, by what was read
//	J6  rest         (*rest).scheduled     the latest time that could be served was; the status knows of what was done. Needs
//	                                       to know where the clocks stopped
//	A1  a while      Rate                  under a failure that lasts, what one parent costs in each minute. Needs calls, and spans
//	    rest         Idle                  no request is made. Needs calls
//	    a while      Prompt                beside one, what needs none of the failing writes is done. The caller says what fails
//	A2  every write  Invalid               no write is refused as invalid or too large, Events included. Needs what was refused
//	U1  every write  (*step).undone        a controller changes what a parent asks for only to undo a rollout that has
//	                                       exceeded its deadline, where that is asked for, and once for each edit
//	U2  every write  (*step).stillStuck    not while more of its children become available. Needs times
//	U3  every write  (*step).wasGood       back to what had all desired children available
//	U4  rest         (*rest).failed        a rollout with a deadline is complete, held or has failed
//	P5  every write  (*step).heldStays     also when the revision of a child that is held back is lost
//	A3  every write  hasty                 fifty failures with one object in a second are no back-off. Needs times
//
// What cannot be seen from outside: what a controller would have done (a promise kept by luck), what it read from its
// caches, a promise about events and logs, the order of writes within one request of the server, and whether the wait
// for a child that does not serve will ever end: the caller of Rest says so.
//
// What may not come in: a clock, a wait, or a fault, other than in the recorder.
package check
