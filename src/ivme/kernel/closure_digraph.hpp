// The closure of any digraph: strongly connected components, and for each a row of the nodes that it leads to.
//
// Rows are over nodes, not over components, so that merging and splitting components renames nothing.
// - An edge (u, v) that comes changes nothing if u leads to v already. Otherwise the components that lead to u and not
//   yet to v take in v's row; they are found by walking backwards from u, and nothing else is looked at. If v leads to
//   u, the components between them become one first.
// - Edges that go: a component that is no longer strongly connected is split (Tarjan, within it). Rows that may have
//   lost something are computed anew from their successors', in reverse topological order, and only a row that did
//   change passes the suspicion on. |row + members| grows strictly along every edge against its direction, so it serves
//   as the topological order, and none is maintained.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "closure.hpp"
#include "closure_row.hpp"

namespace ivme {

class DigraphClosure : public Closure {
public:
    DigraphClosure(uint64_t seed, bool acyclic) : Closure(seed, false), acyclic_(acyclic) {}

    void changed(ClosureDelta& delta) const override;
    uint64_t group(uint32_t node) const override { return component_[node]; }
    void targets(uint32_t node, std::vector<uint32_t>& nodes) const override;
    size_t fan(uint32_t node) const override { return row(component_[node]).size(); }
    bool leads(uint32_t from, uint32_t to) const override { return row(component_[from]).test(to); }
    size_t bytes() const override;
    size_t components() const override;
    uint64_t pairs() const override;
    void check() const override;

protected:
    void update(const std::vector<uint32_t>& gone, const std::vector<uint32_t>& come) override;
    void rebuild() override;
    void grow(size_t nodes) override;
    void forget(uint32_t node) override;
    void followed_changed() override {}
    void settle() override { before_.clear(); }

private:
    // A strongly connected component; it is `cyclic` if it has a cycle, be it a self-loop.
    struct Part {
        std::vector<uint32_t> members;
        std::shared_ptr<Row> row;
        bool cyclic = false;
        bool dirty = false;
        uint64_t rank = 0;  // of a part that a split made, until its row is known
    };
    struct Suspect {
        uint64_t rank;
        uint32_t order, part;
        bool operator<(const Suspect& other) const {
            return rank != other.rank ? rank > other.rank : order > other.order;
        }
    };

    const Row& row(uint32_t part) const { return *parts_[part].row; }
    uint32_t make_part();
    void drop_part(uint32_t part);
    Row& writable(uint32_t part);
    void touch(uint32_t part);
    uint64_t rank(const Part& part) const { return part.row->size() + !part.cyclic; }

    void insert(uint32_t from, uint32_t to);
    uint32_t merge(uint32_t from, uint32_t to);
    void spread(uint32_t part, const Row& row, uint32_t to);
    void remove(const std::vector<uint32_t>& gone);
    bool connected(uint32_t from, uint32_t to);
    void split(uint32_t part, std::vector<Suspect>& suspects);
    void suspect(uint32_t part, std::vector<Suspect>& suspects, uint32_t order = 0);
    void clear_suspects(std::vector<Suspect>& suspects);
    Row computed(uint32_t part);
    // The strongly connected components among some nodes, those that lead nowhere else first.
    std::vector<std::vector<uint32_t>> tarjan(const std::vector<uint32_t>& nodes, uint32_t within);

    bool has_loop(uint32_t node) const;
    uint64_t stamp() { return ++stamp_; }

    bool acyclic_;
    std::vector<Part> parts_;
    std::vector<uint32_t> free_parts_;
    std::vector<uint32_t> component_;                  // of each node
    std::vector<uint64_t> seen_, seen_back_, marked_;  // stamps of nodes, forwards and backwards, and of parts
    std::vector<uint32_t> index_, low_;
    uint64_t stamp_ = 0;
    std::unordered_map<uint32_t, std::shared_ptr<Row>> before_;  // rows of touched nodes before the transaction
    std::shared_ptr<Row> empty_ = std::make_shared<Row>();
};

}  // namespace ivme
