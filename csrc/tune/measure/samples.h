// Timings in rounds, and what they come to.
#pragma once

#include <span>
#include <vector>

namespace softneuro {

// Robust centre of timings: the mean after the outer fifths are pulled in to the quantiles that bound them. Not the
// mean (one preemption spoils it), nor the minimum (it flatters routines whose luck varies).
double winsorised_mean(std::vector<double> samples);

// Makes samples comparable that were timed in rounds, some of them not in all: what slows all of a round is the
// machine, whose speed varies for seconds at a time, and those that dropped out early would be judged by the few rounds
// that they were in. Brings the samples to the pace of the middle round of those that stayed.
void set_pace(std::span<std::vector<double>* const> samples);

}  // namespace softneuro
