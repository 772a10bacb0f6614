package revision

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// This file compares a parent with its log and says, as one value, what the log needs. It decides; history/ writes.

// ParentState is what the core needs to know of the parent, all from one read of it.
type ParentState struct {
	UID        types.UID
	Generation int64
	// Snapshot is the parent's target object state.
	Snapshot *Snapshot
	// Uncached is true if the parent was read from the API server just now. A stamp from a later generation than that
	// was forged, or restored from a backup, and is not believed; otherwise it would block the parent for good.
	Uncached bool
	// Generational is true if every change of the covered fields raises metadata.generation, as for all of spec. Only
	// then can a stamp prove equality (rule E0).
	Generational bool
}

// Answers are the API server's answers to earlier questions under rule E3: revision UID to "equal". They hold for one
// parent at one generation and one version of each revision; keeping them no longer is the caller's job.
type Answers map[types.UID]bool

// Change says what the parent did since the log was last written.
type Change string

// What [Resolve] can find.
const (
	// NoChange: the newest revision is equivalent to the parent.
	NoChange Change = "NoChange"
	// Rollback: an older revision is equivalent; it becomes the newest again.
	Rollback Change = "Rollback"
	// RollForward: no revision is equivalent; a new one is needed.
	RollForward Change = "RollForward"
	// Ask: it takes answers from the API server to tell; see [Resolution.Ask].
	Ask Change = "Ask"
	// Stale: the parent was read at an older generation than the log was written from. Read it again; act on nothing.
	Stale Change = "Stale"
)

// Resolution is what one pass has to know of, and do to, the log before it touches any child.
type Resolution struct {
	Change Change
	// Reason says in one sentence why, for logs, events and conditions.
	Reason string
	// Rule is the rule that found Update. Empty for RollForward, Ask and Stale.
	Rule Rule
	// Update is the revision that is equivalent to the parent, as stored before any of the writes below; nil unless
	// Change is NoChange or Rollback. It may be terminating. Its name, hash and data are what children are built from
	// (rule E4). Its Snapshot is nil if it cannot be decoded but a stamp proves that the parent is what it was; use the
	// parent's then.
	Update *Revision
	// Number is the number that the update revision must have: its own, or a higher one if it has to be created or
	// renumbered.
	Number int64
	// Stamp is what the update revision must be stamped with; equal to its own stamp if nothing is to be written.
	Stamp Stamp
	// Relabel lists the revisions whose objects do not carry their Hash yet: see [Identified].
	Relabel []Revision
	// Duplicates lists revisions whose content another one has too. Children that carry the duplicate's label are
	// relabelled to Of before the duplicate is deleted, and no other children are (kubernetes#111280).
	Duplicates []Duplicate
	// Ask lists the revisions to ask the API server about, newest first.
	Ask []Revision
	// Undecodable lists the revisions that cannot be read. They are kept.
	Undecodable []Revision
	// Full says that no number is left that would be higher than all others; nil mostly. With an Update, that one stays
	// what the parent asks for under the number that it has, although others have higher ones, and Change is NoChange.
	Full *NumberError
}

// NumberError says that no revision can have a higher number than the others: one was given the highest number there
// is. Somebody has to delete that revision, or give it a lower number.
type NumberError struct {
	// Revision is the name of the revision that has the highest number.
	Revision string
}

// Error says which revision stands in the way, and what to do about it.
func (e *NumberError) Error() string {
	return fmt.Sprintf("revision %s has the highest number there is, so no newer one can be recorded; delete it or lower its number",
		e.Revision)
}

// Duplicate is a revision that repeats the content of another.
type Duplicate struct {
	Revision, Of Revision
}

// Renumber reports whether the update revision exists and needs a higher number.
func (r *Resolution) Renumber() bool { return r.Update != nil && r.Update.Number != r.Number }

// Restamp reports whether the update revision exists and needs another stamp.
func (r *Resolution) Restamp() bool { return r.Update != nil && r.Update.Stamp != r.Stamp }

// Resolve finds the revision that is equivalent to the parent and decides which writes the log needs (proposal,
// "Creating a Revision" and "Version Tracking"; design, rules E0 to E6).
//
// revisions are all revisions of the parent in any order, from [Identified]. answers may be nil. ask is true if the API
// server may be asked (rule E3). Without it, revisions that cannot be told apart count as different.
//
// The only error is a [*NumberError]: a new revision is needed, and there is no number for it. The resolution comes
// with it, of kind RollForward and with number 0: its other fields hold. Nothing may be recorded from it.
func Resolve(parent ParentState, revisions []Revision, answers Answers, ask bool) (*Resolution, error) {
	all := Sorted(revisions)
	slices.Reverse(all) // newest first: rule E5, and the first match is the one to keep
	res := &Resolution{Stamp: Stamp{ParentUID: parent.UID, Generation: parent.Generation}}
	if stale, by := fenced(parent, all); stale {
		res.Change = Stale
		res.Reason = fmt.Sprintf("the parent was read at generation %d, but revision %s was recorded at generation %d; waiting for a newer read",
			parent.Generation, by.Name, by.Stamp.Generation)
		return res, nil
	}
	stamped, proof := stampedBy(parent, all), RuleNone
	if stamped != nil {
		if proof = prove(parent, *stamped, answers, ask); proof == RuleNone {
			stamped = nil
		}
	}
	if proof == ruleOpen {
		res.Change, res.Ask = Ask, []Revision{*stamped}
		res.Reason = fmt.Sprintf("revision %s claims to be what the parent asks for, and differs in fields that could be defaults", stamped.Name)
		return res, nil
	}
	live, leaving := readable(all, res)
	live = dedupe(live, stamped, res)
	if stamped != nil && stamped.Snapshot == nil && stamped.Unlabelled {
		res.Relabel = append(res.Relabel, *stamped) // it cannot be read, but children are named after it
	}
	update, rule := stamped, proof
	for _, among := range [][]Revision{live, leaving} {
		if update == nil {
			update, rule = find(parent, among, answers)
		}
		if update == nil && ask {
			res.Ask = questions(parent, among, answers)
		}
		if len(res.Ask) > 0 {
			res.Change = Ask
			res.Reason = fmt.Sprintf("%d stored revisions differ from the parent only in fields that could be defaults", len(res.Ask))
			return res, nil
		}
	}
	err := res.number(parent, all, update, rule)
	return res, err
}

// ruleOpen says that only the API server can tell whether a stamp is right.
const ruleOpen Rule = "open"

// prove says by which rule a stamp is right, [RuleNone] if it is not. Any user who may write revisions can write a
// stamp, and children are built from the revision: so a stamp proves nothing where a value contradicts it, and where it
// differs by fields that only one side has (new defaults, or hostPID slipped in) the API server is asked, if it may be.
// A stamp on unreadable data is right: the parent is used instead, and there is no reason to roll (rule E6).
func prove(parent ParentState, stamped Revision, answers Answers, ask bool) Rule {
	equal, asked := answers[stamped.UID]
	switch {
	case stamped.Snapshot == nil, Compare(parent.Snapshot, stamped.Snapshot) != RuleNone:
		return RuleStamp
	case !Askable(parent.Snapshot, stamped.Snapshot), asked && !equal:
		return RuleNone
	case asked:
		return RuleServer
	case ask:
		return ruleOpen
	default:
		return RuleStamp
	}
}

// fenced reports whether a revision was recorded from a newer read of this very parent.
func fenced(parent ParentState, all []Revision) (bool, Revision) {
	if parent.Uncached {
		return false, Revision{}
	}
	for _, r := range all {
		if r.Stamp.ParentUID == parent.UID && r.Stamp.Generation > parent.Generation {
			return true, r
		}
	}
	return false, Revision{}
}

// readable leaves out revisions that cannot be decoded (rule E6). leaving are the terminating revisions. One of them is
// the update revision if no live revision is equivalent to the parent. It has the name that a new revision of this
// content would get, and under another hash all children would be replaced.
func readable(all []Revision, res *Resolution) (live, leaving []Revision) {
	for _, r := range all {
		if r.Err != nil || r.Snapshot == nil {
			res.Undecodable = append(res.Undecodable, r)
			continue
		}
		if r.Deleting {
			leaving = append(leaving, r)
			continue
		}
		if r.Unlabelled {
			res.Relabel = append(res.Relabel, r)
		}
		live = append(live, r)
	}
	return live, leaving
}

// dedupe keeps one revision of each content: the newest, unless an older one carries the proof of rule E0. all is
// newest first.
func dedupe(all []Revision, stamped *Revision, res *Resolution) []Revision {
	var kept []Revision
next:
	for _, r := range all {
		for i, k := range kept {
			if !duplicates(r.Snapshot, k.Snapshot) {
				continue
			}
			if stamped != nil && stamped.UID == r.UID {
				r, kept[i] = k, r
			}
			res.Duplicates = append(res.Duplicates, Duplicate{Revision: r, Of: kept[i]})
			continue next
		}
		kept = append(kept, r)
	}
	// A duplicate of a duplicate that lost its place must name the one that was kept.
	for i, d := range res.Duplicates {
		for _, k := range kept {
			if duplicates(d.Revision.Snapshot, k.Snapshot) {
				res.Duplicates[i].Of = k
			}
		}
	}
	return kept
}

// stampedBy returns the one revision whose stamp says that it was taken from this parent at this generation, readable
// or not. If several say so, one is a copy, and none of them is believed.
func stampedBy(parent ParentState, all []Revision) *Revision {
	if !parent.Generational {
		return nil
	}
	var found *Revision
	for i, r := range all {
		if r.Stamp == (Stamp{ParentUID: parent.UID, Generation: parent.Generation}) && r.Stamp.Generation > 0 && !r.Deleting {
			if found != nil {
				return nil
			}
			found = &all[i]
		}
	}
	return found
}

// find returns the revision that is equivalent to the parent where no stamp proves one. It applies E1 to all of them,
// then E2, then the answers of E3. Under each rule, revisions that this parent has recorded come first, because its
// children come from them. In an adopted one another release may have stored more or fewer fields. live is newest first
// and has no duplicates.
func find(parent ParentState, live []Revision, answers Answers) (*Revision, Rule) {
	own := func(r Revision) bool { return r.Stamp.ParentUID == parent.UID }
	for _, rule := range []Rule{RuleBytes, RuleNormal, RuleServer} {
		var found *Revision
		for i, r := range live {
			holds := Compare(parent.Snapshot, r.Snapshot) == rule || rule == RuleServer && answers[r.UID]
			if holds && (found == nil || own(r) && !own(*found)) {
				found = &live[i]
			}
		}
		if found != nil {
			return found, rule
		}
	}
	return nil, RuleNone
}

// questions lists the revisions that only the API server can compare with the parent, and that it was not asked about.
func questions(parent ParentState, live []Revision, answers Answers) []Revision {
	var ask []Revision
	for _, r := range live {
		if _, asked := answers[r.UID]; !asked && Askable(parent.Snapshot, r.Snapshot) {
			ask = append(ask, r)
		}
	}
	return ask
}

// number decides which number the update revision gets, and with which stamp. all is newest first and holds every
// revision, readable or not.
func (r *Resolution) number(parent ParentState, all []Revision, update *Revision, rule Rule) error {
	var others int64
	var holder string
	for _, o := range all {
		if update != nil && o.UID == update.UID {
			continue
		}
		if o.Number > others {
			others, holder = o.Number, o.Name
		}
	}
	if update != nil && update.Number > others {
		r.keep(parent, update, rule)
		r.Reason = fmt.Sprintf("revision %d (%s) is what the parent asks for", update.Number, update.Name)
		return nil
	}
	if others == math.MaxInt64 {
		return r.full(parent, update, rule, &NumberError{Revision: holder})
	}
	r.Number = others + 1
	if update == nil {
		r.Change = RollForward
		r.Reason = fmt.Sprintf("no stored revision is what the parent asks for; recording revision %d", r.Number)
		return nil
	}
	r.Change, r.Rule, r.Update = Rollback, rule, update
	r.Reason = fmt.Sprintf("the parent asks for revision %d (%s) again; renumbering it to %d",
		update.Number, update.Name, r.Number)
	return nil
}

// keep leaves the update revision the number that it has.
func (r *Resolution) keep(parent ParentState, update *Revision, rule Rule) {
	r.Change, r.Rule, r.Update, r.Number = NoChange, rule, update, update.Number
	// A stamp is written once, and again if the API server had to be asked: it then saves the question. A generation that
	// rose for another reason (a scale, a new maxUnavailable) is no reason to write. A stamp from a later generation is
	// corrected: it would fence every cached read.
	if update.Stamp.ParentUID == parent.UID && update.Stamp.Generation <= parent.Generation && rule != RuleServer {
		r.Stamp = update.Stamp
	}
}

// full ends the search for a number if there is none: a revision that is stored already can be used all the same.
func (r *Resolution) full(parent ParentState, update *Revision, rule Rule, err *NumberError) error {
	r.Full = err
	if update == nil {
		r.Change = RollForward
		r.Reason = fmt.Sprintf("no stored revision is what the parent asks for, but %v", err)
		return err
	}
	r.keep(parent, update, rule)
	r.Reason = fmt.Sprintf("the parent asks for revision %d (%s) again; it keeps the number that it has, because %v",
		update.Number, update.Name, err)
	return nil
}
