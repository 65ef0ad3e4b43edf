/* Climb to graphs of few steps and little bandwidth time; climb.py runs it.
 *
 * As in the finder, a cost is the number of steps T_L and the load: the loads of the busiest link of all steps, in
 * units of 1 / lcm(1 .. d). A climb changes a graph at random. It keeps a change unless more pairs of nodes are further
 * apart than the target, or, once there are none, the load grows. Graphs are
 *  - Cayley graphs: of a set of elements closed under inverses, by a table of products,
 *  - polycirculants: links of m nodes, repeated by shifts, with the nodes within t steps as bits of words,
 *  - directed polycirculants: the same with links one way; their load is that of an allgather and a reduce-scatter,
 *  - any base with nodes in the middle of some of its cables, or of links one way,
 *  - networks of any links, or those that a shift keeps, by exchanges of the ends of two cables.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS = 16, STEPS = 64, PERIOD = 64, NODES = 10240, WORDS = NODES / 64, SMALL = 2048 };
#define FAR ((int64_t)1 << 60) /* above any load */

/* ---- random numbers: splitmix64 */

static uint64_t state;

static uint64_t next(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static int below(int bound) { return (int)((next() >> 32) * (uint64_t)bound >> 32); }

/* ---- loads */

static int64_t unit; /* lcm(1 .. d) */
static int weights_of;
static uint32_t weight[1 << LINKS]; /* unit / size of a set of links */
static uint16_t jobs[1 << LINKS];   /* by the set of links that a job may use */

static void prepare(int d)
{
    if (weights_of == d) return;
    weights_of = d, unit = 1;
    for (int k = 2; k <= d; k++) {
        int64_t a = unit, b = k;
        while (b) { int64_t rest = a % b; a = b, b = rest; }
        unit = unit / a * k;
    }
    for (int set = 1; set < 1 << d; set++) weight[set] = (uint32_t)(unit / __builtin_popcount(set));
}

/* The least load of the busiest link for `jobs`, which are lost. Below 2^32, as N * unit is. */
static int64_t busiest(int d)
{
    uint32_t most = 0;
    for (int half = 1; half < 1 << d; half *= 2)
        for (int base = 0; base < 1 << d; base += 2 * half)
            for (int i = base; i < base + half; i++) jobs[i + half] += jobs[i];
    for (int set = 0; set < 1 << d; set++) {
        uint32_t load = jobs[set] * weight[set];
        if (load > most) most = load;
    }
    return most;
}

/* ---- Cayley graphs: right[e * n + x] is x times element e of the pool, inverse[e] the place of its inverse */

typedef struct { int64_t load; int set[LINKS]; } Set; /* set[0] = -1: none better was found */

static uint8_t hops[NODES];
static uint16_t mask[NODES], queue[NODES];

static int holds(const int *set, int count, int e)
{
    for (int i = 0; i < count; i++)
        if (set[i] == e) return 1;
    return 0;
}

/* Fill a set up to d elements, with inverses; 0 if it does not succeed soon. */
static int filled(const int *inverse, int pool, int d, int *set, int count)
{
    for (int tries = 0; count < d && tries < 400; tries++) {
        int e = below(pool);
        if (holds(set, count, e) || (inverse[e] != e && count + 2 > d)) continue;
        set[count++] = e;
        if (inverse[e] != e) set[count++] = inverse[e];
    }
    return count == d;
}

static int drawn(const int *inverse, int pool, int d, int *set)
{
    for (int tries = 0; tries < 200; tries++)
        if (filled(inverse, pool, d, set, 0)) return 1;
    return 0;
}

/* Replace an element and its inverse, or two elements that are their own. */
static int changed(const int *inverse, int pool, int d, const int *old, int *set)
{
    for (int tries = 0; tries < 20; tries++) {
        int count = 0, gone = old[below(d)], other = old[below(d)];
        int two = inverse[gone] == gone && inverse[other] == other && below(2);
        for (int i = 0; i < d; i++)
            if (old[i] != gone && old[i] != inverse[gone] && !(two && old[i] == other)) set[count++] = old[i];
        if (filled(inverse, pool, d, set, count)) return 1;
    }
    return 0;
}

/* Search breadth first; return the number of nodes not reached. The queue ends at ends[t] after step t. */
static int sphere(const uint16_t *right, int n, const int *set, int d, int limit, int *steps, int *ends)
{
    int first = 0, last = 1, t = 0;
    memset(hops, 0xff, n);
    hops[0] = 0, queue[0] = 0, ends[0] = 1;
    while (t < limit && last < n && first < last) {
        int end = last;
        t++;
        for (int i = 0; i < d; i++) {
            const uint16_t *times = right + (size_t)set[i] * n;
            for (int at = first; at < end; at++) {
                int y = times[queue[at]];
                uint16_t links = t == 1 ? (uint16_t)(1 << i) : mask[queue[at]];
                if (hops[y] == 0xff) hops[y] = (uint8_t)t, mask[y] = links, queue[last++] = (uint16_t)y;
                else if (hops[y] == t) mask[y] |= links;
            }
        }
        first = end, ends[t] = last;
    }
    *steps = t;
    return n - last;
}

/* The load, or FAR if it is above `most`: far nodes first, because they are the least level. */
static int64_t set_load(int d, int steps, const int *ends, int64_t most)
{
    int64_t total = 0, left = (ends[steps] - 1) * (unit / d);
    for (int t = steps; t > 1; t--) {
        if (total + left > most) return FAR;
        left -= (ends[t] - ends[t - 1]) * (unit / d);
        memset(jobs, 0, sizeof(uint16_t) << d);
        for (int at = ends[t - 1]; at < ends[t]; at++) jobs[mask[queue[at]]]++;
        total += busiest(d);
    }
    total += left;
    return total > most ? FAR : total;
}

/* Climb towards `target` steps, from `start` if `started`, else from random sets. best[t] has the least known load of
 * t steps, and gets better sets. Returns the least value seen, -1 if a set is bandwidth-optimal. */
int64_t climb_cayley(const uint16_t *right, const int *inverse, int n, int pool, int d, int target, int evaluations,
                     int patience, uint64_t seed, Set *best, int *start, int started)
{
    int now[LINKS], set[LINKS], ends[STEPS + 1], steps, waited = 0;
    int64_t value = FAR, least = FAR;
    prepare(d);
    state = seed;
    for (int spent = 0; spent < evaluations; spent++) {
        int fresh = value == FAR || waited > patience;
        if (fresh && started) memcpy(set, start, sizeof set), started = 0;
        else if (!(fresh ? drawn(inverse, pool, d, set) : changed(inverse, pool, d, now, set))) return least;
        int missing = sphere(right, n, set, d, target, &steps, ends);
        int64_t found = missing * (unit * n + 1);
        if (!missing) {
            int64_t known = best[steps].load, bound = fresh ? FAR - 1 : value;
            found = set_load(d, steps, ends, bound > known ? bound : known - 1);
            for (int t = steps; t < STEPS && found < best[t].load; t++) {
                best[t].load = found;
                memcpy(best[t].set, set, sizeof set);
                if (t > steps) best[t].set[0] = -1;
            }
            if (found == unit / d * (n - 1)) return -1;
        }
        waited = fresh || found < value ? 0 : waited + 1;
        if (fresh || found <= value) value = found, memcpy(now, set, sizeof set);
        if (value < least) least = value, memcpy(start, now, sizeof now);
    }
    return least;
}

/* Try sets, d elements each, that lead everywhere within `limit` steps; best as in climb_cayley. */
void try_sets(const uint16_t *right, int n, int d, const int32_t *sets, int64_t count, int limit, Set *best)
{
    int ends[STEPS + 1], steps;
    prepare(d);
    for (const int32_t *set = sets; set < sets + count * d; set += d) {
        if (sphere(right, n, set, d, limit, &steps, ends)) continue;
        int64_t found = set_load(d, steps, ends, best[steps].load - 1);
        for (int t = steps; t < STEPS && found < best[t].load; t++) {
            best[t].load = found;
            memcpy(best[t].set, set, sizeof *set * d);
            if (t > steps) best[t].set[0] = -1;
        }
    }
}

/* ---- polycirculants: links from class a to class b, v periods further; a half link is its own reverse */

typedef struct { int a, b, v, half; } Link;
typedef struct { int count; Link link[PERIOD * LINKS / 2 + PERIOD]; } Lift; /* count = 0: none better was found */
typedef struct { int64_t load; Lift lift; } BestLift;

static uint64_t within[STEPS + 1][PERIOD][WORDS];      /* the nodes within t steps of a node */
static uint64_t twice[2][PERIOD][2 * WORDS + 4];       /* the same twice, one behind the other: shifts are windows */
static int like[PERIOD][LINKS], shift[PERIOD][LINKS];  /* neighbours: a class, moved up */

/* Set the neighbours; 0 if links are parallel or end where they start. */
static int expanded(const Lift *lift, int n, int m, int d)
{
    int count[PERIOD] = {0};
    for (int i = 0; i < lift->count; i++) {
        Link one = lift->link[i];
        int up = m * one.v;
        like[one.a][count[one.a]] = one.b, shift[one.a][count[one.a]++] = up;
        if (one.half) continue;
        if (one.a == one.b && (!up || 2 * up == n)) return 0;
        like[one.b][count[one.b]] = one.a, shift[one.b][count[one.b]++] = up ? n - up : 0;
    }
    for (int a = 0; a < m; a++)
        for (int i = 1; i < d; i++)
            for (int j = 0; j < i; j++)
                if (like[a][i] == like[a][j] && shift[a][i] == shift[a][j]) return 0;
    return 1;
}

static void doubled(const uint64_t *bits, uint64_t *two, int n, int words)
{
    int word = n / 64, bit = n % 64;
    memset(two + words, 0, 8 * (words + 3));
    memcpy(two, bits, 8 * words);
    for (int i = 0; i < words; i++) {
        two[word + i] |= bits[i] << bit;
        if (bit) two[word + i + 1] |= bits[i] >> (64 - bit);
    }
}

/* Add to `out` the nodes that `two` holds, moved up by `up` of n. */
static void moved(uint64_t *restrict out, const uint64_t *restrict two, int up, int n, int words)
{
    int offset = up ? n - up : 0, bit = offset % 64;
    two += offset / 64;
    if (bit) for (int i = 0; i < words; i++) out[i] |= two[i] >> bit | two[i + 1] << (64 - bit);
    else for (int i = 0; i < words; i++) out[i] |= two[i];
}

static int count_of(const uint64_t *bits, int words)
{
    int count = 0;
    for (int i = 0; i < words; i++) count += __builtin_popcountll(bits[i]);
    return count;
}

/* Search breadth first; return the pairs not reached, and stop early above `most`. */
static int64_t spread(int n, int m, int d, int limit, int *steps, int64_t most)
{
    int words = (n + 63) / 64, t = 0;
    uint64_t last = ~(uint64_t)0 >> (64 * words - n);
    int64_t missing = 1, before = 0;
    for (int a = 0; a < m; a++) {
        memset(within[0][a], 0, 8 * words);
        within[0][a][a / 64] = (uint64_t)1 << a % 64;
        doubled(within[0][a], twice[0][a], n, words);
    }
    while (t < limit && missing && missing != before) {
        before = missing, missing = 0, t++;
        for (int a = 0; a < m && (t < limit || missing <= most); a++) {
            uint64_t *bits = within[t][a];
            memcpy(bits, within[t - 1][a], 8 * words);
            for (int i = 0; i < d; i++) moved(bits, twice[(t - 1) & 1][like[a][i]], shift[a][i], n, words);
            bits[words - 1] &= last;
            missing += n - count_of(bits, words);
            doubled(bits, twice[t & 1][a], n, words);
        }
    }
    *steps = t;
    return missing;
}

enum { NARROW = 6 };
static uint64_t united[1 << NARROW][WORDS]; /* by set of links: the fresh nodes of one node that they can bring */

/* The load of a node of up to NARROW links: fresh nodes that no link of a set can bring are shared by the others. */
static inline __attribute__((always_inline)) int64_t narrow_load(const uint64_t *fresh, const uint64_t *const *brought,
                                                                 int words, int d)
{
    int count = count_of(fresh, words);
    int64_t most = count * (unit / d);
    for (int set = 1; set < (1 << d) - 1; set++) {
        int rest = set & (set - 1);
        uint64_t *restrict all = united[set];
        const uint64_t *restrict own = brought[__builtin_ctz(set)], *restrict others = united[rest];
        if (rest) for (int i = 0; i < words; i++) all[i] = others[i] | (own[i] & fresh[i]);
        else for (int i = 0; i < words; i++) all[i] = own[i] & fresh[i];
        int64_t load = (count - count_of(all, words)) * (unit / (d - __builtin_popcount(set)));
        if (load > most) most = load;
    }
    return most;
}

/* The load of one node in one step, from the fresh nodes and those that each of its links can bring. */
static int64_t node_load(const uint64_t *now, const uint64_t *before, const uint64_t *const *brought, int words, int d)
{
    uint64_t fresh[WORDS];
    for (int i = 0; i < words; i++) fresh[i] = now[i] & ~before[i];
    switch (d) {
    case 3: return narrow_load(fresh, brought, words, 3);
    case 4: return narrow_load(fresh, brought, words, 4);
    case 6: return narrow_load(fresh, brought, words, 6);
    }
    memset(jobs, 0, sizeof(uint16_t) << d);
    for (int i = 0; i < words; i++)
        for (uint64_t left = fresh[i]; left; left &= left - 1) {
            int bit = __builtin_ctzll(left);
            unsigned links = 0;
            for (int k = 0; k < d; k++) links |= (unsigned)(brought[k][i] >> bit & 1) << k;
            jobs[links]++;
        }
    return busiest(d);
}

static int64_t lift_load(int n, int m, int d, int steps, int64_t most)
{
    static uint64_t two[2 * WORDS + 4], bits[LINKS][WORDS];
    int words = (n + 63) / 64;
    int64_t least[STEPS + 1], left = 0, total = 0;
    for (int t = 1; t <= steps; t++) {
        int fresh = 0;
        for (int a = 0; a < m; a++) {
            int more = count_of(within[t][a], words) - count_of(within[t - 1][a], words);
            if (more > fresh) fresh = more;
        }
        left += least[t] = fresh * (unit / d);
    }
    for (int t = steps; t > 1; t--) {
        int64_t load = least[t];
        left -= load;
        for (int a = 0; a < m; a++) {
            const uint64_t *brought[LINKS];
            if (total + load + left > most) return FAR;
            for (int i = 0; i < d; i++) {
                doubled(within[t - 1][like[a][i]], two, n, words);
                memset(bits[i], 0, 8 * words);
                moved(bits[i], two, shift[a][i], n, words);
                brought[i] = bits[i];
            }
            int64_t own = node_load(within[t][a], within[t - 1][a], brought, words, d);
            if (own > load) load = own;
        }
        total += load;
    }
    total += left;
    return total > most ? FAR : total;
}

static int drawn_lift(int n, int m, int d, Lift *lift)
{
    int ends[PERIOD * LINKS], count = m * d, copies = n / m, alone = count % 2, at = 0;
    if (alone && copies % 2) return 0;
    if (copies % 2 == 0 && !below(4)) alone += 2;
    for (int i = 0; i < count; i++) {
        int other = below(i + 1);
        ends[i] = ends[other], ends[other] = i / d;
    }
    for (lift->count = 0; at < alone; at++) lift->link[lift->count++] = (Link){ends[at], ends[at], copies / 2, 1};
    for (; at < count; at += 2) lift->link[lift->count++] = (Link){ends[at], ends[at + 1], below(copies), 0};
    return 1;
}

/* Move a link by other periods, or exchange the ends of two links. */
static void change_lift(int n, int m, Lift *lift)
{
    int copies = n / m;
    Link *one = &lift->link[below(lift->count)], *two = &lift->link[below(lift->count)];
    if (one->half) { Link *swap = one; one = two, two = swap; }
    if (one->half) return;
    one->v = below(copies);
    if (one == two || below(5) < 3) return;
    int end = one->b;
    if (two->half) one->b = two->a, two->a = two->b = end;
    else if (below(2)) one->b = two->b, two->b = end, two->v = below(copies);
    else one->b = two->a, two->a = end, two->v = below(copies);
}

/* A turn keeps the graph: it multiplies periods by `times` and moves class a to next[a]. With its `order` it is over. */
typedef struct { int times, order, next[PERIOD]; } Turn;

/* Append the images of a link under the turns, without repeats, and add their ends to `ends`. Returns 0 if a class then
 * has more than d, or if a link ends where it starts. */
static int added(Link one, const Turn *turn, int copies, int d, int *ends, Lift *whole)
{
    Link first = one;
    for (int i = 0; i < turn->order; i++) {
        int back = (copies - one.v) % copies;
        if (i && ((one.a == first.a && one.b == first.b && one.v == first.v)
                  || (one.a == first.b && one.b == first.a && back == first.v))) break;
        if (one.a == one.b && !one.v) return 0;
        one.half = one.a == one.b && back == one.v;
        if (whole->count == PERIOD * LINKS / 2 + PERIOD) return 0;
        whole->link[whole->count++] = one;
        ends[one.a]++;
        if (!one.half) ends[one.b]++;
        if (ends[one.a] > d || ends[one.b] > d) return 0;
        one.a = turn->next[one.a], one.b = turn->next[one.b];
        one.v = (int)((int64_t)one.v * turn->times % copies);
    }
    return 1;
}

/* Add random links to `some`, one of each turn's cycle, until all classes have d; `whole` has all links then. */
static int completed(int n, int m, int d, const Turn *turn, Lift *some, Lift *whole)
{
    int ends[PERIOD] = {0}, tried[PERIOD], open[PERIOD], copies = n / m;
    whole->count = 0;
    for (int i = 0; i < some->count; i++)
        if (!added(some->link[i], turn, copies, d, ends, whole)) return 0;
    for (int tries = 0; tries < 40; tries++) {
        int count = 0, before = whole->count;
        for (int a = 0; a < m; a++)
            if (ends[a] < d) open[count++] = a;
        if (!count) return 1;
        Link one = {open[below(count)], open[below(count)], below(copies), 0};
        if (!below(8)) one.v = copies % 2 || below(2) ? 0 : copies / 2;
        memcpy(tried, ends, sizeof tried);
        if (added(one, turn, copies, d, tried, whole)) memcpy(ends, tried, sizeof ends), some->link[some->count++] = one;
        else whole->count = before;
    }
    return 0;
}

static int drawn_turned(int n, int m, int d, const Turn *turn, Lift *some, Lift *whole)
{
    for (int tries = 0; tries < 200; tries++) {
        some->count = 0;
        if (completed(n, m, d, turn, some, whole)) return 1;
    }
    return 0;
}

/* Replace one link of `some`, or two. */
static int changed_turned(int n, int m, int d, const Turn *turn, const Lift *old, Lift *some, Lift *whole)
{
    for (int tries = 0; tries < 20; tries++) {
        *some = *old;
        for (int gone = 1 + below(2); gone && some->count; gone--)
            some->link[below(some->count)] = some->link[some->count - 1], some->count--;
        if (completed(n, m, d, turn, some, whole)) return 1;
    }
    return 0;
}

/* Draw the links of a shape, or with count = 0 of any, by random numbers of periods. */
static int drawn_as(const Lift *shape, int n, int m, int d, Lift *lift)
{
    if (!shape->count) return drawn_lift(n, m, d, lift);
    *lift = *shape;
    for (int i = 0; i < lift->count; i++) lift->link[i].v = below(n / m);
    return 1;
}

/* As climb_cayley, for polycirculants of a period m. With a shape, links keep their classes. A turn of an order above 0
 * keeps the graphs. */
int64_t climb_lift(int n, int m, int d, int target, int evaluations, int patience, uint64_t seed, BestLift *best,
                   const Lift *shape, const Turn *turn)
{
    static Lift now, lift, some;
    int64_t value = FAR, least = FAR, scale;
    int waited = 0, steps, turns = turn->order;
    prepare(d);
    state = seed, scale = unit * n + 1;
    for (int spent = 0; spent < evaluations; spent++) {
        int fresh = value == FAR || waited > patience;
        if (turns) {
            if (fresh && !drawn_turned(n, m, d, turn, &some, &lift)) return least;
            if (!fresh && !changed_turned(n, m, d, turn, &now, &some, &lift)) return least;
        } else {
            if (fresh && !drawn_as(shape, n, m, d, &lift)) return least;
            if (!fresh) lift = now;
            if (!fresh && shape->count) {
                Link *one = &lift.link[below(lift.count)];
                if (one->half) continue;
                one->v = below(n / m);
            } else if (!fresh) change_lift(n, m, &lift);
        }
        if (!expanded(&lift, n, m, d)) continue;
        int64_t missing = spread(n, m, d, target, &steps, fresh ? FAR : value / scale), found = missing * scale;
        if (!missing) {
            int64_t known = best[steps].load, bound = fresh ? FAR - 1 : value;
            found = lift_load(n, m, d, steps, bound > known ? bound : known - 1);
            for (int t = steps; t < STEPS && found < best[t].load; t++) {
                best[t].load = found, best[t].lift.count = 0;
                if (t == steps) best[t].lift = lift;
            }
            if (found == unit / d * (n - 1)) return -1;
        }
        waited = fresh || found < value ? 0 : waited + 1;
        if (fresh || found <= value) value = found, now = turns ? some : lift;
        if (value < least) least = value;
    }
    return least;
}

/* ---- directed polycirculants: links one way, d out of each class and d into each */

/* Set the neighbours that data come from, or for a reduce-scatter those it goes to. */
static void directed(const Lift *lift, int n, int m, int back)
{
    int count[PERIOD] = {0};
    for (int i = 0; i < lift->count; i++) {
        Link one = lift->link[i];
        int up = m * one.v, at = back ? one.a : one.b;
        like[at][count[at]] = back ? one.b : one.a;
        shift[at][count[at]++] = back || !up ? up : n - up;
    }
}

/* Whether a link ends where it starts, or where another one from there does. */
static int doubtful(const Lift *lift)
{
    for (int i = 0; i < lift->count; i++) {
        Link one = lift->link[i];
        if (one.a == one.b && !one.v) return 1;
        for (int j = 0; j < i; j++) {
            Link two = lift->link[j];
            if (one.a == two.a && one.b == two.b && one.v == two.v) return 1;
        }
    }
    return 0;
}

static void drawn_directed(int n, int m, int d, Lift *lift)
{
    int ends[PERIOD * LINKS], count = m * d;
    for (int i = 0; i < count; i++) {
        int other = below(i + 1);
        ends[i] = ends[other], ends[other] = i / d;
    }
    for (int i = 0; i < count; i++) lift->link[i] = (Link){i / d, ends[i], below(n / m), 0};
    lift->count = count;
}

/* Move a link by other periods, or exchange the heads of two links. */
static void change_directed(int n, int m, Lift *lift)
{
    Link *one = &lift->link[below(lift->count)], *two = &lift->link[below(lift->count)];
    one->v = below(n / m);
    if (one == two || below(5) < 3) return;
    int end = one->b;
    one->b = two->b, two->b = end, two->v = below(n / m);
}

/* As climb_lift, for directed polycirculants; loads are the sum of an allgather's and a reduce-scatter's. */
int64_t climb_directed(int n, int m, int d, int target, int evaluations, int patience, uint64_t seed, BestLift *best)
{
    static Lift now, lift;
    int64_t value = FAR, least = FAR, scale;
    int waited = 0, steps;
    prepare(d);
    state = seed, scale = 2 * (unit * n + 1);
    int64_t optimum = unit / d * (n - 1);
    for (int spent = 0; spent < evaluations; spent++) {
        int fresh = value == FAR || waited > patience;
        if (fresh) drawn_directed(n, m, d, &lift);
        else lift = now, change_directed(n, m, &lift);
        if (doubtful(&lift)) continue;
        directed(&lift, n, m, 0);
        int64_t missing = spread(n, m, d, target, &steps, fresh ? FAR : value / scale), found = missing * scale;
        if (!missing) {
            int64_t known = best[steps].load, bound = fresh ? FAR - 1 : value, most = bound > known ? bound : known - 1;
            int64_t there = lift_load(n, m, d, steps, most == FAR - 1 ? most : most - optimum);
            found = FAR;
            if (there < FAR) {
                directed(&lift, n, m, 1);
                spread(n, m, d, target, &steps, FAR);
                int64_t back = lift_load(n, m, d, steps, most - there);
                if (back < FAR) found = there + back;
            }
            for (int t = steps; t < STEPS && found < best[t].load; t++) {
                best[t].load = found, best[t].lift.count = 0;
                if (t == steps) best[t].lift = lift;
            }
            if (found == 2 * optimum) return -1;
        }
        waited = fresh || found < value ? 0 : waited + 1;
        if (fresh || found <= value) value = found, now = lift;
        if (value < least) least = value;
    }
    return least;
}

/* ---- networks of any links: the neighbours of all nodes, which a shift by m nodes keeps */

static int heads[SMALL][LINKS];
static uint64_t reached[2][SMALL * (SMALL / 64)];

/* Search breadth first from all nodes; return the pairs of the first m nodes that are further apart than `limit`, or a
 * number above `most` as soon as there are so many. */
static inline __attribute__((always_inline)) int64_t apart(int n, int m, int d, int limit, int64_t most, int words)
{
    int64_t missing = 0;
    memset(reached[0], 0, 8 * (size_t)n * words);
    for (int u = 0; u < n; u++) {
        uint64_t *bits = reached[0] + (size_t)u * words;
        bits[u / 64] |= (uint64_t)1 << u % 64;
        for (int i = 0; i < d; i++) bits[heads[u][i] / 64] |= (uint64_t)1 << heads[u][i] % 64;
    }
    for (int t = 2; t <= limit; t++) {
        const uint64_t *from = reached[t & 1];
        uint64_t *to = reached[!(t & 1)];
        for (int u = 0; u < (t < limit ? n : m) && missing <= most; u++) {
            uint64_t *restrict bits = to + (size_t)u * words;
            const uint64_t *restrict own = from + (size_t)u * words;
            for (int k = 0; k < words; k++) bits[k] = own[k];
            for (int i = 0; i < d; i++) {
                const uint64_t *restrict more = from + (size_t)heads[u][i] * words;
                for (int k = 0; k < words; k++) bits[k] |= more[k];
            }
            if (t == limit) missing += n - count_of(bits, words);
        }
    }
    return missing;
}

static int64_t unreached(int n, int m, int d, int limit, int64_t most)
{
    if (limit < 2) return FAR;
    switch ((n + 63) / 64) { /* a known number of words is twice as fast */
    case 1: return apart(n, m, d, limit, most, 1);
    case 2: return apart(n, m, d, limit, most, 2);
    case 3: case 4: return apart(n, m, d, limit, most, 4);
    case 5: case 6: return apart(n, m, d, limit, most, 6);
    case 7: case 8: return apart(n, m, d, limit, most, 8);
    }
    return apart(n, m, d, limit, most, (n + 63) / 64);
}

/* The load of the first m nodes; FAR above `limit` steps or `most`. */
static int64_t whole_load(int n, int m, int d, int limit, int64_t most, int *steps)
{
    int words = (n + 63) / 64, now = 0, t = 0;
    int64_t total = 0, missing = 1;
    memset(reached[0], 0, 8 * (size_t)n * words);
    for (int u = 0; u < n; u++) reached[0][(size_t)u * words + u / 64] = (uint64_t)1 << u % 64;
    while (missing && t++ < limit) {
        int64_t load = 0;
        missing = 0;
        for (int u = 0; u < n; u++) {
            const uint64_t *brought[LINKS], *before = reached[now] + (size_t)u * words;
            uint64_t *bits = reached[!now] + (size_t)u * words;
            memcpy(bits, before, 8 * words);
            for (int i = 0; i < d; i++) {
                brought[i] = reached[now] + (size_t)heads[u][i] * words;
                for (int k = 0; k < words; k++) bits[k] |= brought[i][k];
            }
            missing += n - count_of(bits, words);
            int64_t own = u < m ? node_load(bits, before, brought, words, d) : 0;
            if (own > load) load = own;
            if (total + load > most) return FAR;
        }
        total += load, now = !now;
    }
    *steps = t;
    return missing ? FAR : total;
}

/* ---- new nodes in the middle of cables of a base of n - more nodes with d heads each */

/* Lead the cables of a base of n - more nodes, whose ends are in `cut`, through the new nodes. */
static void lead(int n, int more, int d, const int *base, const int *cut)
{
    int old = n - more, share = d - more + 1;
    for (int u = 0; u < old; u++) memcpy(heads[u], base + u * d, d * sizeof *base);
    for (int x = 0; x < more; x++) {
        int links = share;
        for (int y = 0; y < more; y++)
            if (y != x) heads[old + x][links++] = old + y;
        for (int i = 0; i < share; i++) {
            int one = cut[x * share + i], two = cut[(x * share + i) ^ 1];
            heads[old + x][i] = one;
            for (int k = 0; k < d; k++)
                if (heads[one][k] == two) heads[one][k] = old + x;
        }
    }
}

/* Climb to cables through which no pair is more than `target` steps apart, then lower the load, of which at most
 * `loads` are computed. Returns the load, FAR if there is none, the steps, and the ends of the cables: d - more + 1 for
 * each new node. The new nodes are linked to each other. */
int64_t insert(int n, int more, int d, const int *base, int target, int evaluations, int loads, uint64_t seed,
               int *steps, int *cables)
{
    int64_t value = FAR, load = FAR;
    int old = n - more, ends = more * (d - more + 1), t;
    prepare(d);
    state = seed;
    while (evaluations-- && loads) {
        int cut[LINKS * LINKS], first = value == FAR ? 0 : 2 * below(ends / 2), last = value == FAR ? ends : first + 2;
        memcpy(cut, cables, ends * sizeof *cut);
        for (int i = first; i < last; i++) cut[i] = -1;
        while (first < last) {
            int u = below(old), v = base[u * d + below(d)];
            if (!holds(cut, ends, u) && !holds(cut, ends, v)) cut[first++] = u, cut[first++] = v;
        }
        lead(n, more, d, base, cut);
        int64_t found = unreached(n, n, d, target, value);
        if (found > value) continue;
        if (!found) {
            int64_t own = whole_load(n, n, d, target, load, &t);
            loads--;
            if (own > load) continue;
            load = own, *steps = t;
        }
        value = found;
        memcpy(cables, cut, ends * sizeof *cut);
    }
    return load;
}

/* Lead the links of a base of n - 1 nodes, whose tails and heads are in `cut`, through a new node. Neighbours are heads;
 * with `back`, where the base has the tails, tails. */
static void lead_one_way(int n, int d, const int *base, const int *cut, int back)
{
    for (int u = 0; u < n - 1; u++) memcpy(heads[u], base + u * d, d * sizeof *base);
    for (int i = 0; i < d; i++) {
        int one = cut[2 * i + back], two = cut[2 * i + !back];
        heads[n - 1][i] = two;
        for (int k = 0; k < d; k++)
            if (heads[one][k] == two) heads[one][k] = n - 1;
    }
}

/* Whether two links that are cut have the same tail, or the same head. */
static int shared(const int *cut, int d)
{
    for (int i = 0; i < d; i++)
        for (int j = 0; j < i; j++)
            if (cut[2 * i] == cut[2 * j] || cut[2 * i + 1] == cut[2 * j + 1]) return 1;
    return 0;
}

/* As insert, for one new node in the middle of d links one way: `out` has the heads of a base of n - 1 nodes, `in` the
 * tails. The load is the sum of an allgather's and a reduce-scatter's. */
int64_t insert_one_way(int n, int d, const int *out, const int *in, int target, int evaluations, int loads,
                       uint64_t seed, int *steps, int *links)
{
    int64_t value = FAR, load = FAR;
    int t;
    prepare(d);
    state = seed;
    while (evaluations-- && loads) {
        int cut[2 * LINKS], first = value == FAR ? 0 : below(d), last = value == FAR ? d : first + 1;
        memcpy(cut, links, 2 * d * sizeof *cut);
        for (int i = first; i < last; i++) {
            cut[2 * i] = below(n - 1);
            cut[2 * i + 1] = out[cut[2 * i] * d + below(d)];
        }
        if (shared(cut, d)) continue;
        lead_one_way(n, d, in, cut, 1);
        int64_t found = unreached(n, n, d, target, value);
        if (found > value) continue;
        if (!found) {
            int64_t there = whole_load(n, n, d, target, load, &t), both = FAR;
            loads--;
            if (there < FAR) {
                lead_one_way(n, d, out, cut, 0);
                int64_t back = whole_load(n, n, d, target, load - there, &t);
                if (back < FAR) both = there + back;
            }
            if (both > load) continue;
            load = both, *steps = t;
        }
        value = found;
        memcpy(links, cut, 2 * d * sizeof *cut);
    }
    return load;
}

/* ---- exchanges of the ends of two cables, in all shifts at once */

static int kept[SMALL][LINKS];

/* Node u and its shifts get neighbour `later` and its shifts in place of `old`; 0 if u does not have it. */
static int relinked(int n, int m, int d, int u, int old, int later)
{
    for (int up = 0; up < n; up += m) {
        int *own = heads[(u + up) % n], i = 0;
        while (i < d && own[i] != (old + up) % n) i++;
        if (i == d) return 0;
        own[i] = (later + up) % n;
    }
    return 1;
}

/* Whether the links of u go both ways, to different nodes. */
static int sound(int d, int u)
{
    for (int i = 0; i < d; i++)
        if (heads[u][i] == u || holds(heads[u], i, heads[u][i]) || !holds(heads[heads[u][i]], d, u)) return 0;
    return 1;
}

/* Exchange ends of two random cables. A cable between a node and its shift by n/2, if this is a multiple of m, is its
 * own shift: such ones arise and vanish in pairs. Returns 0 for a change that gives no network. */
static int exchanged(int n, int m, int d)
{
    int u = below(n), v = heads[u][below(d)], x = below(n), y = heads[x][below(d)], half = n / 2;
    int even = n % 2 == 0 && half % m == 0, one = even && (u + half) % n == v, two = even && (x + half) % n == y, good;
    if (u == x || u == y || v == x) return 0;
    if (one && two) good = relinked(n, m, d, u, v, x) && relinked(n, m, d, x, y, u);
    else if (one) good = relinked(n, m, d, u, v, x) && relinked(n, m, d, x, y, u)
                      && relinked(n, m, d, y, x, (y + half) % n);
    else if (two) return 0;
    else if (even && !below(8)) good = relinked(n, m, d, u, v, (u + half) % n)
                                    && relinked(n, m, d, v, u, (v + half) % n);
    else good = relinked(n, m, d, u, v, x) && relinked(n, m, d, x, y, u) && relinked(n, m, d, v, u, y)
             && relinked(n, m, d, y, x, v);
    return good && sound(d, u) && sound(d, v) && sound(d, x) && sound(d, y);
}

/* A random number with an exponential distribution of mean 1, in units of 1/1024. The logarithm base 2 by squares, in
 * integers, so that all machines find the same. */
static int64_t waiting(void)
{
    uint64_t z = next() >> 11 | 1;
    int bits = 63 - __builtin_clzll(z);
    int64_t whole = 53 - bits, part = 0;
    uint64_t x = z << (31 - (bits < 31 ? bits : 31)) >> (bits > 31 ? bits - 31 : 0); /* in [2^31, 2^32) */
    for (int i = 0; i < 10; i++) {
        x = x * x >> 31;
        part *= 2;
        if (x >> 32) x >>= 1, part++;
    }
    return (whole * 1024 - part) * 710 / 1024; /* ln 2 */
}

/* Anneal `given` (n rows of d neighbours, which a shift by m keeps) until no pair is more than `target` steps apart;
 * `hot` and `cold` are temperatures in pairs / 1024. Then lower the load in `polish` evaluations. Returns the load, FAR
 * if pairs remain; the network in `given` and its steps. */
int64_t exchange(int n, int m, int d, int target, int64_t evaluations, int polish, int64_t hot, int64_t cold,
                 int shuffles, uint64_t seed, int *given, int *steps)
{
    int64_t value, load;
    int t;
    prepare(d);
    state = seed;
    for (int u = 0; u < n; u++) memcpy(kept[u], given + u * d, d * sizeof *given);
    memcpy(heads, kept, n * sizeof *heads);
    for (int i = 0; i < shuffles; i++) {
        if (exchanged(n, m, d)) memcpy(kept, heads, n * sizeof *heads);
        else memcpy(heads, kept, n * sizeof *heads);
    }
    value = unreached(n, m, d, target, FAR);
    for (int64_t spent = 0; spent < evaluations && value; spent++) {
        int64_t heat = hot + (cold - hot) * spent / evaluations, most = value + (waiting() * heat >> 20);
        int64_t found = exchanged(n, m, d) ? unreached(n, m, d, target, most) : FAR;
        if (found > most) { memcpy(heads, kept, n * sizeof *heads); continue; }
        memcpy(kept, heads, n * sizeof *heads);
        value = found;
    }
    if (value) return FAR;
    memcpy(heads, kept, n * sizeof *heads);
    load = whole_load(n, m, d, target, FAR - 1, steps);
    for (int spent = 0; spent < polish; spent++) {
        int64_t found = FAR;
        if (exchanged(n, m, d) && !unreached(n, m, d, target, 0)) found = whole_load(n, m, d, target, load, &t);
        if (found > load) { memcpy(heads, kept, n * sizeof *heads); continue; }
        memcpy(kept, heads, n * sizeof *heads);
        load = found, *steps = t;
    }
    for (int u = 0; u < n; u++) memcpy(given + u * d, kept[u], d * sizeof *given);
    return load;
}
