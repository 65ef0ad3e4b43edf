/* Climb to graphs with links both ways of few steps and little bandwidth time; climb.py runs it.
 *
 * As in the finder, a cost is the number of steps T_L and the load: the loads of the busiest link of all steps, in
 * units of 1 / lcm(1 .. d). A climb changes a graph at random. It keeps a change unless more pairs of nodes are further
 * apart than the target, or, once there are none, the load grows. Graphs are
 *  - Cayley graphs: of a set of elements closed under inverses, by a table of products,
 *  - polycirculants: links of m nodes, repeated by shifts, with the nodes within t steps as bits of words,
 *  - any base with a node in the middle of d/2 of its cables.
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

/* The load of one node in one step, from the fresh nodes and those that each of its links can bring. */
static int64_t node_load(const uint64_t *now, const uint64_t *before, const uint64_t *const *brought, int words, int d)
{
    memset(jobs, 0, sizeof(uint16_t) << d);
    for (int i = 0; i < words; i++)
        for (uint64_t fresh = now[i] & ~before[i]; fresh; fresh &= fresh - 1) {
            int bit = __builtin_ctzll(fresh);
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

/* Draw the links of a shape, or with count = 0 of any, by random numbers of periods. */
static int drawn_as(const Lift *shape, int n, int m, int d, Lift *lift)
{
    if (!shape->count) return drawn_lift(n, m, d, lift);
    *lift = *shape;
    for (int i = 0; i < lift->count; i++) lift->link[i].v = below(n / m);
    return 1;
}

/* As climb_cayley, for polycirculants of a period m. With a shape, links keep their classes. */
int64_t climb_lift(int n, int m, int d, int target, int evaluations, int patience, uint64_t seed, BestLift *best,
                   const Lift *shape)
{
    static Lift now, lift;
    int64_t value = FAR, least = FAR, scale;
    int waited = 0, steps;
    prepare(d);
    state = seed, scale = unit * n + 1;
    for (int spent = 0; spent < evaluations; spent++) {
        int fresh = value == FAR || waited > patience;
        if (fresh && !drawn_as(shape, n, m, d, &lift)) return least;
        if (!fresh) lift = now;
        if (!fresh && shape->count) lift.link[below(lift.count)].v = below(n / m);
        else if (!fresh) change_lift(n, m, &lift);
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
        if (fresh || found <= value) value = found, now = lift;
        if (value < least) least = value;
    }
    return least;
}

/* ---- a node in the middle of d/2 cables of a base of n - 1 nodes with d heads each */

static int heads[SMALL][LINKS];
static uint64_t reached[2][SMALL][SMALL / 64];

/* Search breadth first from all nodes; return the load, 0 with `steps_only`, FAR above `limit` steps or `most`. */
static int64_t whole_load(int n, int d, int limit, int steps_only, int64_t most, int *steps)
{
    int words = (n + 63) / 64, now = 0, t = 0;
    int64_t total = 0, missing = 1;
    memset(reached[0], 0, sizeof reached[0]);
    for (int u = 0; u < n; u++) reached[0][u][u / 64] = (uint64_t)1 << u % 64;
    while (missing && t++ < limit) {
        int64_t load = 0;
        missing = 0;
        for (int u = 0; u < n; u++) {
            const uint64_t *brought[LINKS];
            uint64_t *bits = reached[!now][u];
            memcpy(bits, reached[now][u], 8 * words);
            for (int i = 0; i < d; i++) {
                brought[i] = reached[now][heads[u][i]];
                for (int k = 0; k < words; k++) bits[k] |= brought[i][k];
            }
            missing += n - count_of(bits, words);
            int64_t own = steps_only ? 0 : node_load(bits, reached[now][u], brought, words, d);
            if (own > load) load = own;
            if (total + load > most) return FAR;
        }
        total += load, now = !now;
    }
    *steps = t;
    return missing ? FAR : total;
}

/* Try random cables; return the least load of the fewest steps up to `limit`, its steps and its cables (d ends). The
 * load of at most `loads` is computed. */
int64_t insert(int n, int d, const int *base, int limit, int tries, int loads, uint64_t seed, int *steps, int *cables)
{
    int64_t best = FAR;
    prepare(d);
    state = seed;
    while (tries-- && loads) {
        int cut[LINKS], count = 0, t;
        while (count < d) {
            int u = below(n - 1), v = base[u * d + below(d)];
            if (!holds(cut, count, u) && !holds(cut, count, v)) cut[count++] = u, cut[count++] = v;
        }
        for (int u = 0; u < n - 1; u++) memcpy(heads[u], base + u * d, d * sizeof *base);
        for (int i = 0; i < d; i++) {
            heads[n - 1][i] = cut[i];
            for (int k = 0; k < d; k++)
                if (heads[cut[i]][k] == cut[i ^ 1]) heads[cut[i]][k] = n - 1;
        }
        if (whole_load(n, d, limit, 1, FAR, &t) == FAR) continue;
        if (t < limit) limit = t, best = FAR;
        int64_t load = whole_load(n, d, limit, 0, best - 1, &t);
        loads--;
        if (load < best) best = load, *steps = t, memcpy(cables, cut, d * sizeof *cut);
    }
    return best;
}
