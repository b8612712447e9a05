// The closure of an undirected graph: a spanning forest with replacement edges (Holm, de Lichtenberg and Thorup, 2001).
//
// Edges have levels. The forest of level i is made of the tree edges of level i and above, and its trees have at most
// n / 2^i vertices. When a tree edge goes, a replacement is looked for from its level downwards, in the smaller of the
// two halves; an edge that is looked at in vain rises a level, so that each edge pays for at most log n looks, of O(log
// n) each: O(log^2 n) amortised for a change, and O(log n) to ask whether two nodes are connected.
#pragma once

#include <array>
#include <vector>

#include "closure.hpp"
#include "euler_tour.hpp"

namespace ivme {

class ForestClosure : public Closure {
public:
    explicit ForestClosure(uint64_t seed) : Closure(seed, true), tours_(seed) {}

    void changed(ClosureDelta& delta) const override;
    uint64_t group(uint32_t node) const override { return tours_.root(vertex_at(0, node)); }
    void targets(uint32_t node, std::vector<uint32_t>& nodes) const override;
    size_t fan(uint32_t node) const override;
    bool leads(uint32_t from, uint32_t to) const override;
    size_t bytes() const override;
    size_t components() const override;
    uint64_t pairs() const override;
    void check() const override;

protected:
    void update(const std::vector<uint32_t>& gone, const std::vector<uint32_t>& come) override;
    void rebuild() override;
    void grow(size_t nodes) override;
    void forget(uint32_t node) override;
    void followed_changed() override;
    void settle() override;

private:
    // What the forest knows of an edge: its arcs at each level up to its own if it is in the forest, else its places.
    struct Member {
        uint32_t level = 0;
        bool tree = false;
        uint32_t at_from = NIL, at_to = NIL;
        std::vector<std::array<uint32_t, 2>> arcs;
    };
    struct Level {
        std::vector<uint32_t> vertex;              // the tours' item of a node, or NONE
        std::vector<std::vector<uint32_t>> loose;  // its edges of this level that are not in the forest
    };
    struct Placed {
        uint64_t before, after;
        uint32_t node;
    };

    uint32_t vertex_at(uint32_t level, uint32_t node) const {
        return level < levels_.size() && node < levels_[level].vertex.size() ? levels_[level].vertex[node]
                                                                             : EulerTours::NONE;
    }
    uint32_t vertex(uint32_t level, uint32_t node);
    Level& level(uint32_t number);
    void insert(uint32_t id);
    void erase(uint32_t id);
    void link(uint32_t id, uint32_t level, bool solid);
    void loosen(uint32_t id, uint32_t level);
    void unloosen(uint32_t id);
    bool replace(uint32_t from, uint32_t to, uint32_t level);
    bool replace_at(uint32_t level, uint32_t small);
    void seed(uint32_t node) {
        if (followed_) seeds_.push_back(node);
    }
    std::vector<Placed> placed() const;

    EulerTours tours_;
    std::vector<Level> levels_;
    std::vector<Member> members_;  // by edge
    std::vector<uint32_t> seeds_;  // nodes whose component may have changed in this transaction
    std::vector<uint64_t> label_;  // of each node, its component before the transaction, while followed; 0 for none
    uint64_t labels_ = 0;
};

}  // namespace ivme
