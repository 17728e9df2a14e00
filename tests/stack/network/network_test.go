package network

import (
	"net/netip"
	"testing"
)

func free(netip.Prefix) bool { return false }

func TestForName(t *testing.T) {
	first, err := ForName("c5c3", free)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("is stable", func(t *testing.T) {
		if again, _ := ForName("c5c3", free); again != first {
			t.Errorf("got %v and %v for one name", first, again)
		}
	})
	t.Run("differs between the names that people use", func(t *testing.T) {
		seen := map[netip.Prefix]string{}
		for _, name := range []string{"c5c3", "ci", "second", "demo"} {
			plan, err := ForName(name, free)
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[plan.Prefix]; ok {
				t.Errorf("%s and %s share %s", name, other, plan.Prefix)
			}
			seen[plan.Prefix] = name
		}
	})
	t.Run("takes the next network when the first is taken", func(t *testing.T) {
		next, err := ForName("c5c3", func(p netip.Prefix) bool { return p == first.Prefix })
		if err != nil {
			t.Fatal(err)
		}
		if next.Prefix == first.Prefix {
			t.Error("chose the taken network")
		}
	})
	t.Run("says so when none is left", func(t *testing.T) {
		if _, err := ForName("c5c3", func(netip.Prefix) bool { return true }); err == nil {
			t.Error("no error")
		}
	})
}

func TestParse(t *testing.T) {
	plan, err := Parse("10.213.7.0/30")
	if err != nil {
		t.Fatal(err)
	}
	if plan.Host.String() != "10.213.7.1" || plan.Stack.String() != "10.213.7.2" {
		t.Errorf("got host %s and stack %s", plan.Host, plan.Stack)
	}
	if len(plan.Interface) > 15 {
		t.Errorf("%q is too long for an interface name", plan.Interface)
	}
	for name, subnet := range map[string]string{
		"no network":           "ten",
		"too large":            "10.213.7.0/24",
		"IPv6":                 "fd00::/126",
		"inside the pods":      "10.244.0.4/30",
		"inside the Services":  "10.96.1.0/30",
		"an address, no range": "10.213.7.1",
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if got, err := Parse(subnet); err == nil {
				t.Errorf("accepted as %v", got)
			}
		})
	}
}
