// Package network decides which addresses a stack uses.
//
// Every stack lives in a network namespace of its own and is joined to the machine by one pair of
// virtual interfaces on a /30. Inside, all stacks use the same ports and the same pod and Service
// ranges; only the two addresses of the /30 tell them apart.
package network

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
)

// Ranges inside the namespace. They are the same in every stack, since nothing of them is visible
// outside.
var (
	Pods     = netip.MustParsePrefix("10.244.0.0/24")
	Services = netip.MustParsePrefix("10.96.0.0/16")
	// APIService is the ClusterIP that Kubernetes gives the Service "kubernetes": the first of Services.
	APIService = netip.MustParseAddr("10.96.0.1")
	// DNSService is where kubelet tells pods to look for a name server. Nothing serves it yet.
	DNSService = netip.MustParseAddr("10.96.0.10")
)

// Plan is the link between the machine and one stack.
type Plan struct {
	// Prefix is the /30 of the link.
	Prefix netip.Prefix
	// Host is the machine's end, Stack the stack's. Everything in the stack listens on Stack.
	Host, Stack netip.Addr
	// Interface is the name of the machine's end, at most 15 characters as Linux wants it.
	Interface string
}

// Parse makes a plan of a /30 such as "10.213.7.0/30".
func Parse(subnet string) (Plan, error) {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil {
		return Plan{}, fmt.Errorf("subnet %q: %w", subnet, err)
	}
	prefix = prefix.Masked()
	if !prefix.Addr().Is4() || prefix.Bits() != 30 {
		return Plan{}, fmt.Errorf("subnet %q: want an IPv4 /30", subnet)
	}
	for _, inside := range []netip.Prefix{Pods, Services} {
		if prefix.Overlaps(inside) {
			return Plan{}, fmt.Errorf("subnet %q overlaps %s, which the stack uses inside", subnet, inside)
		}
	}
	host := prefix.Addr().Next()
	stack := host.Next()
	bytes := stack.As4()
	return Plan{Prefix: prefix, Host: host, Stack: stack, Interface: fmt.Sprintf("c5c3%x", bytes[:])}, nil
}

// ForName derives the plan of a stack from its name: one of the 254 networks 10.213.N.0/30, the next
// free one when the first choice is taken.
func ForName(name string, taken func(netip.Prefix) bool) (Plan, error) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	first := hash.Sum32() % 254
	for i := range uint32(254) {
		plan, err := Parse(fmt.Sprintf("10.213.%d.0/30", 1+(first+i)%254))
		if err != nil {
			return Plan{}, err
		}
		if !taken(plan.Prefix) {
			return plan, nil
		}
	}
	return Plan{}, fmt.Errorf("every network 10.213.N.0/30 is in use: give one with --subnet")
}

// Taken reports whether an interface of this machine has an address in the network.
func Taken(prefix netip.Prefix) bool {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if used, err := netip.ParsePrefix(a.String()); err == nil && prefix.Overlaps(used.Masked()) {
			return true
		}
	}
	return false
}
