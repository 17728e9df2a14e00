// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func planned(seed uint64, count int) []blow {
	p := newPlan(rand.New(rand.NewPCG(seed, 0)), []time.Duration{2 * time.Second, 15 * time.Second, 8 * time.Second})
	var blows []blow
	for range count {
		blows = append(blows, p.next())
	}
	return blows
}

func TestPlan(t *testing.T) {
	t.Run("equal seeds draw equal blows, others other ones", func(t *testing.T) {
		if !slices.Equal(planned(7, 50), planned(7, 50)) {
			t.Error("seed 7 drew two plans")
		}
		if slices.Equal(planned(7, 50), planned(8, 50)) {
			t.Error("seeds 7 and 8 drew the same plan")
		}
	})
	t.Run("each round kills every victim once", func(t *testing.T) {
		for round := range slices.Chunk(planned(3, 60), 3) {
			victims := []int{round[0].victim, round[1].victim, round[2].victim}
			slices.Sort(victims)
			if !slices.Equal(victims, []int{0, 1, 2}) {
				t.Errorf("a round kills %v", victims)
			}
		}
	})
	t.Run("a victim is back within a minute, start included", func(t *testing.T) {
		boots := []time.Duration{2 * time.Second, 15 * time.Second, 8 * time.Second}
		for _, b := range planned(5, 300) {
			if b.down < time.Second || b.down+boots[b.victim] > backWithin {
				t.Errorf("victim %d is left dead for %s", b.victim, b.down)
			}
			if b.pause < shortestPause || b.pause > longestPause {
				t.Errorf("the pause before a kill is %s", b.pause)
			}
		}
	})
}
