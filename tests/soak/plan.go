// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

const (
	// backWithin is how soon a victim is back, its own start included.
	backWithin = 60 * time.Second
	// The pause between two kills, in which nothing is down. Were it always short, the schedule would
	// ask for the impossible: a rotation needs every component at once, and a credential lives for no
	// more than its grace period past the moment when it should have been replaced.
	shortestPause, longestPause = 10 * time.Second, 40 * time.Second
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
