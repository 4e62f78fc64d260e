# The tables of docs/performance.md, made of what tools/dev/bench has measured, and the aims that the figures are held
# against.

def databases: ["PostgreSQL", "MariaDB", "MySQL", "SQLite"];
def kind: .database | split(" ")[0];
def sorted: sort_by(kind as $k | databases | index($k));
# `pair --linger` is a measurement of its own.
def of($scenario): [.results[] | select(.scenario == $scenario and .linger == null)] | sorted;
def lingering: [.results[] | select(.scenario == "pair" and .linger != null)] | sorted;

def figure: if . == null then "–" elif . >= 100 then round | tostring | [while(length > 0; .[:-3])] | map(.[-3:]) | reverse | join(",")
  elif . >= 10 then (. * 10 | round) / 10 | tostring elif . >= 0.1 then (. * 100 | round) / 100 | tostring else (. * 10000 | round) / 10000 | tostring end;
def us: if . == null then "–" elif . >= 10000 then "\(. / 1000 | figure) ms" else "\(figure) µs" end;
def row: "| " + join(" | ") + " |";
def table($head): ($head | row), ($head | map("---") | row), .[];
def at_most($limit): if . == null then "–" else "\(figure) (≤ \($limit): \(if . <= $limit then "met" else "**missed**" end))" end;
def at_least($limit): if . == null then "–" else "\(figure) (≥ \($limit): \(if . >= $limit then "met" else "**missed**" end))" end;
# The same, with a limit for each database.
def limit($limits): kind as $k | $limits[$k] // $limits.MariaDB;
def naive: .ratios.naive;
def own: .advisory // .getlock;

def summary: "Measured on \(.day), on a machine of \(.machine.cores) cores that it shared with other work (load \(.machine.load_at_the_beginning) at the beginning), its files on \(.machine.file_system)\(if .quick then ", in the short form (`--quick`)" else "" end). p50 is the median, p99 the time that 99 of 100 stayed below.";

def settings: of("pair") | map([kind, .database, (.durable | if . then "yes" else "**no**" end),
    (.settings | to_entries | map("\(.key) \(if .value == "" then "(empty)" else .value end)") | join(", "))] | .[1:] | row)
  | table(["database", "durable", "settings"]);

def pair: of("pair") | map([kind, (.dlock.p50_us | us), (.raw.p50_us | us), (.ratio | at_most(1.05)), (.naive.p50_us | us), (limit({"PostgreSQL": 1.1, "MariaDB": 1.05, "SQLite": 1.05}) as $aim | naive | at_most($aim)),
    (own.p50_us | us), (.redis.p50_us | us), (.dlock.p99_us | us), (.raw.p99_us | us),
    ([.dlock, .raw, .naive] | map(.log_bytes_per_pair | figure) | join(" / "))] | row)
  | table(["pair", "dlock p50", "raw p50", "dlock / raw", "naive p50", "dlock / naive", "own locks p50", "Redis p50", "dlock p99", "raw p99",
      "bytes of log a pair, dlock / raw / naive"]);

# The same with locks that linger: what comes from the last release is granted without a statement.
def pair_linger: lingering | map([kind, (.linger.pairs_per_second | at_least(500000)), (.linger.p50_us | us), (.linger.p99_us | us), (.linger.log_bytes_per_pair | figure),
    (.dlock.pairs_per_second | figure), (.naive.pairs_per_second | figure), (.redis.pairs_per_second | figure),
    (if .redis then .linger.pairs_per_second / .redis.pairs_per_second else null end | at_least(10))] | row)
  | table(["pair, locks that linger for 1 s", "lingering, pairs/s", "p50", "p99", "bytes of log a pair", "without lingering, pairs/s", "naive pairs/s", "Redis pairs/s",
      "lingering / Redis"]);

def many: . as $all | of("many") | map(select(.threads == 64)) | map(kind as $kind | ($all | of("pair") | map(select(kind == $kind)) | first) as $alone
    | [kind, (.dlock.pairs_per_second | figure), (.naive.pairs_per_second | figure),
      (limit({"PostgreSQL": 5, "MariaDB": 4, "SQLite": 40}) as $aim | naive | at_least($aim)), (.raw.pairs_per_second | figure), (.ratio | figure),
      (limit({"PostgreSQL": 0.8, "MariaDB": 0.5, "SQLite": 0.8}) as $aim | .ratios.redis | at_least($aim)),
      (if $alone == null then null else .dlock.pairs_per_second / $alone.raw.pairs_per_second end | figure),
      (own.pairs_per_second | figure), (.redis.pairs_per_second | figure), (.dlock.p99_us | us)] | row)
  | table(["many, 64 threads", "dlock pairs/s", "naive pairs/s, 32 connections", "dlock / naive", "raw pairs/s", "dlock / raw", "dlock / Redis",
      "dlock / one raw client", "own locks pairs/s", "Redis pairs/s", "dlock p99"]);

# Fewer threads, and more: dlock's pairs in a second, and how many times those of naive.
def many_threads: [of("many") | group_by(kind)[] | sort_by(.threads)] | sort_by(.[0] | kind as $k | databases | index($k))
  | ((.[0] // []) | map(.threads)) as $threads
  | map([(.[0] | kind)] + map("\(.dlock.pairs_per_second | figure) (\(naive | figure))") | row)
  | table(["many: pairs/s (times naive)"] + ($threads | map("\(.) thread\(if . == 1 then "" else "s" end)")));

# The same threads in several processes, an engine each: dlock's pairs in a second, and how many times those of one engine.
def many_engines: of("many") | map(select(.threads == 64 and .engines2 != null))
  | map(.dlock.pairs_per_second as $one | [kind, ($one | figure)] + ([.engines2, .engines4] | map("\(.pairs_per_second | figure) (\(.pairs_per_second / $one | figure))")) | row)
  | table(["many, 64 threads: pairs/s (times one engine)", "one engine", "2 engines", "4 engines"]);

def hot: . as $all | of("hot") | map([kind, (.dlock.pairs_per_second | figure), (.raw.pairs_per_second | figure), (.ratio | at_least(30)),
    (if .by_statement then .by_statement.pairs_per_second / .raw.pairs_per_second else null end | at_least(1.9)), (.naive.pairs_per_second | figure),
    (own.pairs_per_second | figure), (.redis.pairs_per_second | figure), (.dlock.p50_us | us), (.dlock.p99_us | us)] | row)
  | table(["hot, \($all | of("hot") | first | .threads) threads", "dlock pairs/s", "one raw client, pairs/s", "dlock / raw", "by statements / raw", "one naive client, pairs/s",
      "own locks pairs/s", "one Redis client, pairs/s", "dlock p50", "dlock p99"]);

def shared: . as $all | of("shared") | map([kind, (.dlock.pairs_per_second | figure), (.one.pairs_per_second | figure), (.ratio | figure), (.dlock.p99_us | us),
    (.renewal.leases | figure), (.renewal.dlock.p50_us | us), (.renewal.statements_in_a_round | figure)] | row)
  | table(["shared, \($all | of("shared") | first | .threads) threads", "readers, pairs/s", "one client alone, pairs/s", "readers / one", "readers p99",
      "readers that stay", "their renewal, p50", "statements of a renewal"]);

def semaphore: . as $all | of("semaphore") | map([kind, (.limit | figure), (.dlock.pairs_per_second | figure), (.one.pairs_per_second | figure), (.ratio | figure),
    (.dlock.p50_us | us), (.dlock.p99_us | us)] | row)
  | table(["semaphore, \($all | of("semaphore") | first | .threads) threads", "permits", "pairs/s", "one client alone, pairs/s", "semaphore / one", "p50", "p99"]);

def busy: of("busy") | map([kind, (.dlock.p50_us | us), (.select.p50_us | us), (.ratio | at_most(1.2)), (.raw_ratio | figure),
    "\(.log_bytes) (\(.rounds_without_log) of \(.rounds) rounds without a byte)"] | row)
  | table(["busy", "dlock p50", "select p50", "dlock / select", "raw / select", "bytes of log a round"]);

def handoff: of("handoff") | map([kind, (.listening.p50_us | us), (.listening.p99_us | us), (.polling.p50_us | us), (.commit.p50_us | us),
    (.listening.p50_commits | figure), (.listening.p50_paused_commits | at_most(1.3)), (.deadline.p99_us | us), (.stop.p99_us | us)] | row)
  | table(["handoff", "listening p50", "listening p99", "polling p50", "one commit", "listening, in commits", "in commits after a pause", "late after a deadline, p99", "after a stop request, p99"]);

def herd: of("herd") | map([kind, "\(.threads.waiters) + \(.processes.waiters)", "\(.all_s | figure) s", (.each_us | us), (.commit_p50_us | us),
    (.held.statements_per_s | figure), (.held.log_bytes_per_s | figure), (.held.connections | figure)] | row)
  | table(["herd", "threads + processes", "all had it within", "each", "one commit", "statements/s while held", "bytes of log/s", "connections"]);

def renew: of("renew") | map([kind, (.leases | figure), (.least_leases_in_a_round | figure), (.dlock.p50_us | us), (.dlock.p99_us | us),
    (.dlock.leases_per_second | figure)] | row)
  | table(["renew", "leases", "at least in a round", "a round, p50", "p99", "leases/s"]);

def scale: of("scale") | map([kind, (.small.rows | figure), (.large.rows | figure), "\(.leases | figure) by \(.engines)", (.small.p50_us | us), (.large.p50_us | us),
    (.ratio | at_most(1.2)), (.small.p99_us | us), (.large.p99_us | us)] | row)
  | table(["scale", "few rows", "many rows", "leases held meanwhile", "few p50", "many p50", "many / few", "few p99", "many p99"]);

def reap: of("reap") | map([kind, (.removed | figure), (limit({"PostgreSQL": 50000, "MariaDB": 50000, "SQLite": 20000}) as $aim | .rows_per_second | at_least($aim)), (.idle.p99_us | us), (.meanwhile.p99_us | us), (.p99_ratio | at_most(3))] | row)
  | table(["reap", "rows", "rows/s", "acquire p99, idle", "acquire p99 meanwhile", "meanwhile / idle"]);

# The data of a plot: a line a database, a column a contender.
def bars($scenario; $words; field): of($scenario) | map(select($scenario != "many" or .threads == 64)) | map([kind] + [.[$words[]] | if . == null then "?" else field end] | map(tostring) | join("\t")) | .[];
