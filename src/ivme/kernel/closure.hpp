// The transitive closure of a bag of edges, kept while edges come and go: which nodes a path of at least one edge leads
// to, from each node. The base knows the edges; a kind of graph knows how the closure follows from their changes.
//
// A transaction is at most one `change`, then `commit` or `roll_back`. The caller holds a lock.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "array.hpp"
#include "closure_graph.hpp"

namespace ivme {

// An edge would close a cycle where none may be; the codes of its nodes, the first one again at the end.
struct Cycle : std::runtime_error {
    explicit Cycle(std::vector<int64_t> nodes) : std::runtime_error("cycle"), codes(std::move(nodes)) {}
    std::vector<int64_t> codes;
};

// The change of a closure: pairs that came (weight 1) and pairs that went (-1).
struct ClosureDelta {
    Array<int64_t> from, to, weights;
    void push(int64_t a, int64_t b, int64_t weight) {
        from.push(a);
        to.push(b);
        weights.push(weight);
    }
};

class Closure {
public:
    Closure(uint64_t seed, bool undirected) : graph_(Seed(seed), undirected), undirected_(undirected) {}
    virtual ~Closure() = default;

    // Adds to the multiplicities of edges. What counts is the net change of each edge.
    void change(const int64_t* from, const int64_t* to, const int64_t* weights, size_t n);
    void commit();
    void roll_back();

    // From now on, or no longer, `changed` is known.
    void follow(bool on);
    bool followed() const { return followed_; }
    // The change of the closure in the open transaction.
    virtual void changed(ClosureDelta& delta) const = 0;

    bool reaches(int64_t from, int64_t to) const {
        uint32_t a = graph_.find(from, false), b = graph_.find(to, true);
        return a != NIL && b != NIL && leads(a, b);
    }
    // The number of nodes that a code leads to.
    size_t degree(int64_t from) const {
        uint32_t node = graph_.find(from, false);
        return node == NIL ? 0 : fan(node);
    }
    // The nodes of a shortest path from one code to another, both included; empty if there is none.
    std::vector<int64_t> path(int64_t from, int64_t to) const;

    // Nodes with an edge, those of one group behind one another.
    std::vector<uint32_t> sources() const;
    // Nodes of one group lead to the same nodes.
    virtual uint64_t group(uint32_t node) const = 0;
    virtual void targets(uint32_t node, std::vector<uint32_t>& nodes) const = 0;
    virtual size_t fan(uint32_t node) const = 0;
    virtual bool leads(uint32_t from, uint32_t to) const = 0;
    virtual size_t bytes() const { return graph_.bytes(); }
    virtual size_t components() const = 0;
    virtual uint64_t pairs() const = 0;
    // Raises std::logic_error if the structure contradicts itself.
    virtual void check() const = 0;

    const Graph& graph() const { return graph_; }
    uint64_t version() const { return version_; }
    uint64_t operations = 0;

protected:
    // Some edges are gone (detached), others have come (not attached yet). Calls `attach` for each.
    virtual void update(const std::vector<uint32_t>& gone, const std::vector<uint32_t>& come) = 0;
    // Everything anew from the attached edges.
    virtual void rebuild() = 0;
    virtual void grow(size_t nodes) = 0;
    // The node has no edges any more, and its place may be another's.
    virtual void forget(uint32_t node) = 0;
    virtual void followed_changed() = 0;
    virtual void settle() = 0;

    template <class Visit>
    void neighbours(uint32_t node, Visit visit) const {
        for (uint32_t id : graph_.out(node)) visit(graph_.edge(id).to);
        if (undirected_) {
            for (uint32_t id : graph_.in(node)) visit(graph_.edge(id).from);
        }
    }

    std::vector<int64_t> search(uint32_t from, uint32_t to, bool guided) const;

    Graph graph_;
    bool undirected_;
    bool followed_ = false;

private:
    void apply(const std::vector<std::pair<uint32_t, int64_t>>& touched);
    void forget_unused();

    std::vector<std::pair<uint32_t, int64_t>> touched_;  // edges of the transaction with their multiplicity before
    bool broken_ = false;
    uint64_t version_ = 0;
};

std::unique_ptr<Closure> make_closure(const std::string& kind, uint64_t seed);

}  // namespace ivme
