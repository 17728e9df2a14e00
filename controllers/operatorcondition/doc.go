// Package operatorcondition tells Operator Lifecycle Manager (OLM) when not to replace the operator: while
// an order stands between a mint and its delivery, the condition Upgradeable of the operator's own
// OperatorCondition is False, and OLM leaves the next version Pending.
//
// No upgrade harms an order at any moment, since every step is repaired by the next pass. The hold spares
// the ones that are under way the detour, and whoever upgrades the doubt.
package operatorcondition
