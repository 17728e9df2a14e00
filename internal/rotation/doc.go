// Package rotation decides what a rotation does next.
//
// It is pure: it reads a clock only through its input, knows no Kubernetes
// client and no Keystone client, and keeps nothing between two calls. A
// controller observes, calls [Decide] (application credentials) or
// [DecidePassword] (user passwords), and carries the plan out. Any part of a
// plan may fail to happen, in any pass: the next decision starts from what was
// observed, so a crash between two effects costs a pass and nothing else.
//
// # Questions before effects
//
// A plan first asks, then acts. [Plan.AskLive], [Plan.Ask], [Plan.Prove] and
// [Plan.Verify] are questions to Keystone. The controller puts each question at
// most once per pass, writes the answer into the [Input] and decides again,
// until a plan asks nothing that was not put already. It carries out the effects
// of that last plan only. A question that stays open is no reason to skip those
// effects: whatever depends on an answer is left out of the plan until the
// answer is there.
//
// # Order of effects
//
//	Mark, Delete, Mint, Switch, ClearPrevious, Forget
//
// Mark comes first because it records what the others are about to make
// invisible. Delete comes before Mint so that K-ORC cannot make an old
// credential anew while the new one appears. A plan prunes only what is
// superseded under the persisted status, so nothing is pruned for the sake of a
// switch that was not written.
//
// # What is promised
//
//   - Keystone never holds more than two credentials of one order, expired ones
//     included. A generation is out of the count only once Keystone itself said,
//     with no K-ORC object left that could create it, that no credential of that
//     generation's name exists.
//   - The credential in the delivered Secret is one that Keystone holds, unless
//     somebody else removed it.
//   - A credential whose name Keystone already knows is never minted: K-ORC would
//     adopt the namesake, and its secret and expiry would not be ours.
package rotation
