// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

const (
	// backWithin is how soon a victim is back, its own start included.
	backWithin = 60 * time.Second
	// The pause between two kills, in which nothing is down. A rotation needs every component at once for
	// about a quarter of a minute, and K-ORC and ESO first sit out the interval at which they try again. With
	// shorter pauses (10 s were tried) five kills in a row leave no such moment in a grace period of two
	// minutes: the schedule would ask for the impossible, whatever the operator does.
	shortestPause, longestPause = 30 * time.Second, time.Minute
)

// blow is one kill to come.
type blow struct {
	// pause comes first.
	pause  time.Duration
	victim int
	// down is how long the victim is left dead before it is started.
	down time.Duration
}

// plan draws the blows. Equal seeds and victims draw equal blows; when they fall depends on how long
// each victim takes to start.
type plan struct {
	random *rand.Rand
	// boots are how long each victim takes from its start to its first answer, as a rule.
	boots []time.Duration
	round []int
}

func newPlan(random *rand.Rand, boots []time.Duration) *plan {
	return &plan{random: random, boots: boots}
}

// next draws a blow. The victims are drawn in rounds, each once in a random sequence: with independent
// draws a run of ten minutes leaves one of six out more often than not.
func (p *plan) next() blow {
	if len(p.round) == 0 {
		p.round = p.random.Perm(len(p.boots))
	}
	victim := p.round[0]
	p.round = p.round[1:]
	return blow{
		pause:  p.between(shortestPause, longestPause),
		victim: victim,
		down:   p.between(time.Second, backWithin-p.boots[victim]),
	}
}

func (p *plan) between(least, most time.Duration) time.Duration {
	return least + time.Duration(p.random.Int64N(int64(most-least)))
}
