// Package calibrate points the checker at controllers that are known to break promises: those of Kubernetes 1.37.2, on
// the real API server, behind the same fault transport and the same log of requests that cairn's own run behind. A
// checker that does not find their bugs proves nothing about ours, and one that reports what is right proves nothing
// either.
//
// It holds tests only.
//
//   - StatefulSet, history limit reached, the first write after a restart fails. The clean-up on the error path knows
//     neither revision that status names and deletes the current one (H3); a pod below the partition comes back from
//     the update revision (P5), or from the deleted one while the cache shows it (P4), and status calls the update
//     revision the current one from then on (S3). TestStatefulSetDeletesItsCurrentRevision makes that write fail; in
//     TestTheSweepFindsThatTheCurrentRevisionIsDeleted the sweep comes upon it by itself.
//   - DaemonSet, going back to a revision that exists twice: all pods get its label, whatever they run (P4), and the
//     rollout is called complete (R4). TestDaemonSetRelabelsPodsOfOtherRevisions.
//   - StatefulSet, scaled to 0 in a rollout: all of no pods are updated, so the update revision becomes the current one
//     (S3). TestStatefulSetPromotesWithoutPods.
//   - StatefulSet, edited again before the first edit was promoted: the number of current pods is decremented for a pod
//     that is not current, and the server refuses -1 (S1). TestStatefulSetCountsBelowZero. Where there are others to
//     count, the wrong number is stored (S1); the tests of the deleted revision see that.
//   - StatefulSet, OrderedReady, a pod that never becomes ready: it outlives the edit that would fix it.
//     TestStatefulSetCannotLeaveABrokenRevision (kubernetes#67250, #60164, #141095).
//   - ReplicaSet, two active managers: each makes all pods (P2). TestTwoManagersMakeTooManyPods.
//   - All kinds: every delete goes by name, without the UID (P6). It is left out of what the tests look at.
//
// The other half is clean_test.go: rollouts, partitions and scaling by the same controllers without a fault, of which
// nothing is reported.
package calibrate
