package status

import (
	"slices"
	"strings"
	"unicode"
)

// This file maps the words of a status to meanings. Controllers share few names, but their names consist of common
// words: NotReady, UpdateFailed, "Cluster in healthy state".

// meaning is the meaning of words about an object, the worst last. Of several words the worst counts.
type meaning int

const (
	// silent: the words mean nothing here.
	silent meaning = iota
	// mild: the object may be done. Its opposite is not a failure: an idle scaler is not active.
	mild
	// good: the object is done, or its work has succeeded.
	good
	// moving: the object changes, was stopped by a user, or does not serve now.
	moving
	// bad: the object has failed.
	bad
)

// vocabulary has the meanings of words in lower case.
var vocabulary = func() map[string]meaning {
	out := map[string]meaning{}
	for m, words := range map[meaning]string{
		mild: `
			active enabled scheduled created updated running serving listening streaming up on online existing working
			open started provided allowed
		`,
		good: `
			ready available healthy ok okay green normal stable alive success successful successfully succeeded succeed
			complete completed finished done installed provisioned established accepted programmed admitted approved
			issued valid validated reconciled synced synchronized initialized configured applied resolved registered
			connected joined reachable passing passed uptodate ended terminated fulfilled published imported verified
			compiled assigned deployed promoted bound attached latest reserved insync quorum processed compliant
		`,
		moving: `
			pending progress progressing updating upgrading creating reconciling deleting terminating installing
			provisioning scaling rolling applying initializing waiting starting restarting migrating restoring
			bootstrapping resizing replacing configuring deploying syncing resuming draining recovering rebuilding
			remediating repairing healing rebalancing relocating evicting rotating fallback
			stopping joining building pausing preparing importing processing queued paused suspended stopped switchover
			failover failing over unknown missing unhealthy unavailable unready unreachable unschedulable blocked
			conflict conflicted yellow red outdated outofsync warn degrading wait requires required needs hibernated
			hibernating offline sealed unstable disconnected evicted installready deprovisioned detached unbound unprovisioned
		`,
		bad: `
			failed fail failure fails degraded error errored err errors fatal invalid stalled aborted broken dead
			rejected denied crashed crash crashloopbackoff expired revoked corrupted corrupt lost exhausted exceeded
			cancelled canceled timeout timedout inconclusive terminal misconfigured insufficient impossible unsupported
			unrecoverable stuck rollback rolledback faulted pressure
		`,
	} {
		for word := range strings.FieldsSeq(words) {
			out[word] = m
		}
	}
	return out
}()

// negations invert the meaning of the next word that has one: NotAllReplicasReady. limits do so only if that is good:
// PartiallyAvailable, PartiallyFailed.
var (
	negations = []string{"not", "no", "non", "without", "isnt", "never", "cannot"}
	limits    = []string{"partially", "partial", "partly"}
)

// wordsOf splits text into words in lower case: AllReplicasReady, HEALTH_ERR, out-of-sync.
func wordsOf(text string) []string {
	var out []string
	var word []rune
	runes := []rune(text)
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = nil
	}
	for n, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && n > 0 && (unicode.IsLower(runes[n-1]) || n+1 < len(runes) && unicode.IsLower(runes[n+1])):
			end()
		}
		word = append(word, r)
	}
	end()
	return joined(out)
}

// phrases are several words with a meaning of their own, which count as one.
var phrases = [][]string{
	{"up", "to", "date"}, {"out", "of", "sync"}, {"in", "sync"}, {"rolled", "back"}, {"install", "ready"}, {"job", "set"},
}

// joined makes one word of each phrase.
func joined(words []string) []string {
	for _, phrase := range phrases {
		for n := 0; n+len(phrase) <= len(words); n++ {
			if slices.Equal(words[n:n+len(phrase)], phrase) {
				words = slices.Replace(words, n, n+len(phrase), strings.Join(phrase, ""))
			}
		}
	}
	return words
}

// meaningOf returns the meaning of words together. running is the meaning of a word in -ing that is not in the
// vocabulary, as in ContinuousArchiving.
func meaningOf(words []string, running meaning) meaning {
	out, negated, limited := silent, false, false
	for _, word := range words {
		m, known := vocabulary[word]
		if !known && strings.HasSuffix(word, "ing") && len(word) > 4 {
			m = running
		}
		switch {
		case slices.Contains(negations, word):
			negated = true
			continue
		case slices.Contains(limits, word):
			limited = true
			continue
		case m == silent:
			continue
		case (negated || limited) && m < moving:
			m = moving
		case negated:
			m = mild
		}
		out, negated, limited = max(out, m), false, false
	}
	if limited { // ONLINE_PARTIAL
		out = max(out, moving)
	}
	return out
}
