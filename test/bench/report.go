package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// results of all rounds, by operation and clients.
type results map[string][]sample

// median of what a function takes from each sample.
func median[T time.Duration | float64](samples []sample, of func(sample) T) T {
	values := make([]T, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	return middle(values)
}

func middle[T time.Duration | float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// goal is a ratio that is to be reached.
type goal struct {
	what     string
	ours     string
	bare     string
	clients  []int
	bareWith int // clients of the bare side, when it differs
	of       func(sample) float64
	ofBare   func(sample) float64
	target   float64
	most     bool // the ratio is to be at most the target
}

func rate(s sample) float64 { return s.rate }
func p50(s sample) float64  { return s.p50.Seconds() }
func wall(s sample) float64 { return s.wall.Seconds() }

// goals are those of the issue.
var goals = []goal{
	{what: "claim, rate", ours: ourClaim, bare: barePair, clients: []int{1, 8, 32}, of: rate, target: 0.8},
	{what: "claim, latency (p50)", ours: ourClaim, bare: bareCAS, clients: []int{1}, of: p50, target: 1.5, most: true},
	{what: "64 racers, until all are answered", ours: ourRace, bare: bareCAS, clients: []int{racers}, bareWith: 1, of: wall, ofBare: p50, target: 8, most: true},
	{what: "renew, rate", ours: ourRenew, bare: bareRenew, clients: []int{1, 8, 32}, of: rate, target: 0.9},
	{what: "renew, rate, by the update of such a Lease", ours: ourRenew, bare: bareWatched, clients: []int{1, 8, 32}, of: rate, target: 0.9},
	{what: "send to one room, rate", ours: ourSend, bare: bareMessage, clients: []int{32}, of: rate, target: 3},
	{what: "send to 32 rooms, rate", ours: ourSpread, bare: bareMessage, clients: []int{32}, of: rate, target: 0.7},
	{what: "send to one room through two replicas, rate", ours: ourReplicas, bare: bareMessage, clients: []int{32}, of: rate, target: 1.3},
	{what: "whoami, rate", ours: ourWhoami, bare: bareGet, clients: []int{1, 8, 32}, of: rate, target: 5},
	{what: "read_board of 50 tasks, rate", ours: ourBoard, bare: bareGet, clients: []int{1, 8, 32}, of: rate, target: 0.8},
	{what: "write_file of 1 KB, rate", ours: ourWrite, bare: bareWrite, clients: []int{1, 8, 32}, of: rate, target: 0.5},
	{what: "read_file of 1 KB, rate", ours: ourRead, bare: bareRead, clients: []int{1, 8, 32}, of: rate, target: 0.7},
}

// ratio gives the median over the rounds of ours by bare, and the least and the most of them.
func (g goal) ratio(r results, clients int) (mid, low, high float64, ok bool) {
	with := clients
	if g.bareWith > 0 {
		with = g.bareWith
	}
	ofBare := g.ofBare
	if ofBare == nil {
		ofBare = g.of
	}
	ours, bare := r[key(g.ours, clients)], r[key(g.bare, with)]
	var ratios []float64
	for i := range min(len(ours), len(bare)) {
		ratios = append(ratios, g.of(ours[i])/ofBare(bare[i]))
	}
	if len(ratios) == 0 {
		return 0, 0, 0, false
	}
	return middle(ratios), slices.Min(ratios), slices.Max(ratios), true
}

// byCPU gives the ratio of the CPU time that a call takes all processes, bare by ours. It says what the rates would come to if
// nothing else ran, and is steadier.
func (g goal) byCPU(r results, clients int) string {
	ours, bare := r[key(g.ours, clients)], r[key(g.bare, clients)]
	if g.most || len(ours) == 0 || len(bare) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", mean(bare, "").Seconds()/mean(ours, "").Seconds())
}

// others gives how many cores other programs had on average.
func (r results) others() float64 {
	sum, n := 0.0, 0
	for _, samples := range r {
		for _, s := range samples {
			sum, n = sum+s.others, n+1
		}
	}
	return sum / float64(max(1, n))
}

func verdict(ok bool) string {
	if ok {
		return "yes"
	}
	return "NO"
}

// rows of a table, the head first.
func (r results) goalRows() [][]string {
	rows := [][]string{{"What", "Clients", "Ratio", "Range", "Target", "Met", "By CPU time"}}
	for _, g := range goals {
		for _, clients := range g.clients {
			mid, low, high, ok := g.ratio(r, clients)
			if !ok {
				continue
			}
			sign, met := "≥", mid >= g.target
			if g.most {
				sign, met = "≤", mid <= g.target
			}
			rows = append(rows, []string{
				g.what, fmt.Sprint(clients), fmt.Sprintf("%.2f", mid), fmt.Sprintf("%.2f–%.2f", low, high),
				fmt.Sprintf("%s %g", sign, g.target), verdict(met), g.byCPU(r, clients),
			})
		}
	}
	if s := r[key(ourReplicas, 32)]; len(s) > 0 {
		worst := median(s, func(s sample) time.Duration { return s.p99 })
		rows = append(rows, []string{
			"send to one room through two replicas, p99", "32", milliseconds(worst), "", "< 1 s", verdict(worst < time.Second), "",
		})
	}
	return rows
}

// order in which operations are listed.
var order = []string{
	bareCAS, barePair, ourClaim, ourRace, bareRenew, bareWatched, ourRenew, bareMessage, ourSend, ourSpread, ourReplicas,
	bareGet, ourPing, ourWhoami, ourBoard, bareWrite, ourWrite, bareRead, ourRead,
}

var clientCounts = []int{1, 8, 32, racers}

func (r results) each(visit func(name string, clients int, samples []sample)) {
	for _, name := range order {
		for _, clients := range clientCounts {
			if samples := r[key(name, clients)]; len(samples) > 0 {
				visit(name, clients, samples)
			}
		}
	}
}

func (r results) rateRows() [][]string {
	rows := [][]string{{"Operation", "Clients", "Calls a second", "p50", "p99", "Client's CPU a call", "All CPU a call"}}
	r.each(func(name string, clients int, samples []sample) {
		cell := fmt.Sprintf("%.0f", median(samples, rate))
		if name == ourRace {
			cell = "all in " + milliseconds(median(samples, func(s sample) time.Duration { return s.wall }))
		}
		rows = append(rows, []string{
			name, fmt.Sprint(clients), cell,
			milliseconds(median(samples, func(s sample) time.Duration { return s.p50 })),
			milliseconds(median(samples, func(s sample) time.Duration { return s.p99 })),
			milliseconds(mean(samples, own)), milliseconds(mean(samples, "")),
		})
	})
	return rows
}

// mean CPU time a call that a process used, or all of them. It is counted in steps of 10 ms, so a mean says more than a
// median.
func mean(samples []sample, process string) time.Duration {
	var sum time.Duration
	for _, s := range samples {
		for name, spent := range s.cpu {
			if process == "" || process == name {
				sum += spent
			}
		}
	}
	return sum / time.Duration(len(samples))
}

func milliseconds(d time.Duration) string {
	digits := 1
	if d < 10*time.Millisecond {
		digits = 2
	}
	return fmt.Sprintf("%.*f ms", digits, d.Seconds()*1000)
}

func writeTables(out io.Writer, r results) {
	_, _ = fmt.Fprintf(out, "Other programs had %.2f cores meanwhile.\n\n", r.others())
	for _, rows := range [][][]string{r.goalRows(), r.rateRows()} {
		writeAligned(out, rows)
		_, _ = fmt.Fprintln(out)
	}
}

func writeAligned(out io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush()
}

// writeCosts prints what a call costs each process.
func writeCosts(out io.Writer, r results) {
	processes := []string{own, "bridge", "manager", "kube-apiserver", "etcd", "kube-controller-manager"}
	rows := [][]string{append([]string{"CPU a call", "Clients"}, processes...)}
	r.each(func(name string, clients int, samples []sample) {
		row := []string{name, fmt.Sprint(clients)}
		for _, p := range processes {
			row = append(row, milliseconds(mean(samples, p)))
		}
		rows = append(rows, row)
	})
	writeAligned(out, rows)
}

func writeMarkdown(out io.Writer, rows [][]string) {
	for i, row := range rows {
		_, _ = fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			_, _ = fmt.Fprintf(out, "|%s\n", strings.Repeat(" --- |", len(row)))
		}
	}
	_, _ = fmt.Fprintln(out)
}

// writeReport writes the document.
func writeReport(out io.Writer, o options, r results) {
	_, _ = fmt.Fprintf(out, reportHead, o.rounds, o.time, r.others())
	writeMarkdown(out, r.goalRows())
	_, _ = fmt.Fprint(out, reportRates)
	writeMarkdown(out, r.rateRows())
	_, _ = fmt.Fprint(out, reportTail)
}
