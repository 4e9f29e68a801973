package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options of the program. The environment gives the defaults, so that make can pass them on.
type options struct {
	rooms  string
	report string
	only   string
	rounds int
	time   time.Duration
	scale  float64
	cost   bool
	// bridges is how many replicas run. The watches of each cost every write.
	bridges int
	// blobURL is where contents are kept: the plane's own folder when it is empty.
	blobURL string
}

func parse() (options, error) {
	o := options{rounds: 8, time: time.Second, scale: 1, bridges: 2}
	flag.StringVar(&o.rooms, "rooms", "bin/rooms", "the rooms binary to measure")
	flag.StringVar(&o.report, "report", "docs/benchmarks.md", "file to write the report to; empty for none")
	flag.StringVar(&o.only, "only", os.Getenv("BENCH_ONLY"), "regular expression of the operations to run (BENCH_ONLY)")
	flag.IntVar(&o.rounds, "rounds", o.rounds, "rounds, of which medians are taken (BENCH_ROUNDS)")
	flag.DurationVar(&o.time, "time", o.time, "how long each operation runs in a round (BENCH_TIME)")
	flag.Float64Var(&o.scale, "scale", o.scale, "factor on how many tasks are claimed in a round (BENCH_SCALE)")
	flag.BoolVar(&o.cost, "cost", false, "print what each process spends on each operation")
	flag.IntVar(&o.bridges, "bridges", o.bridges, "replicas of the bridge; with one there is no second to send through")
	flag.StringVar(&o.blobURL, "blob-url", os.Getenv("BENCH_BLOB_URL"), "store for the contents of files; empty for a folder (BENCH_BLOB_URL)")
	for name, variable := range map[string]string{"rounds": "BENCH_ROUNDS", "time": "BENCH_TIME", "scale": "BENCH_SCALE"} {
		if v := os.Getenv(variable); v != "" {
			if err := flag.Set(name, v); err != nil {
				return o, fmt.Errorf("%s: %w", variable, err)
			}
		}
	}
	flag.Parse()
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context, out io.Writer) error {
	o, err := parse()
	if err != nil {
		return err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	p, err := startPlane(ctx, o.rooms, o.bridges, o.blobURL)
	if err != nil {
		return err
	}
	defer p.stop()
	w, err := newWorld(ctx, p)
	if err != nil {
		return err
	}
	results, err := measure(ctx, o, only, w)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out)
	writeTables(out, results)
	if o.cost {
		_, _ = fmt.Fprintln(out)
		writeCosts(out, results)
	}
	if o.report == "" {
		return nil
	}
	var b strings.Builder
	writeReport(&b, o, results)
	return os.WriteFile(o.report, []byte(b.String()), 0o644) //nolint:gosec // for everybody to read
}

// measure runs all operations in turns.
func measure(ctx context.Context, o options, only *regexp.Regexp, w *world) (results, error) {
	ops := w.operations(o.scale)
	all := results{}
	for round := range o.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d", round+1, o.rounds)
		began := time.Now()
		for i := range ops {
			op := ops[i]
			if round%2 == 1 { // every other round goes backwards, so that no operation always profits from its neighbour
				op = ops[len(ops)-1-i]
			}
			if !only.MatchString(op.key()) {
				continue
			}
			s, err := w.sample(ctx, op, round, o.time)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", op.key(), err)
			}
			all[op.key()] = append(all[op.key()], s)
		}
		fmt.Fprintf(os.Stderr, ": %s\n", time.Since(began).Round(time.Second))
	}
	return all, nil
}
