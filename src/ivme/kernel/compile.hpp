// From steps with numbers to steps with maps and indexes: everything is resolved and checked once, here.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace ivme {

// A read as it is given: for each column of the map, the column of the joined delta, or -1 if it stays open.
struct ReadSpec {
    Map* map;
    std::vector<int> columns;
    bool payload;
    int pending;
};

class TriggerBuilder {
public:
    explicit TriggerBuilder(unsigned registers) : trigger_(std::make_unique<Trigger>()), defined_(registers, false) {
        trigger_->registers.resize(registers);
    }

    void load(LoadStep step, const Layout& layout);
    void store(StoreStep step);
    void scan(unsigned target, Map* map, bool indicator);
    void join(unsigned target, unsigned origin, unsigned added, const std::vector<ReadSpec>& reads);
    void project(unsigned target, unsigned origin, std::vector<unsigned> columns);
    void distinct(unsigned target, unsigned origin, std::vector<unsigned> columns);
    void exists(unsigned target, unsigned origin, Map* map);
    void filter(unsigned target, unsigned origin, Map* map, std::vector<unsigned> columns, bool present);
    void add(unsigned origin, Map* map, Check check);
    void emit(unsigned origin);
    void watch(unsigned origin, Partition* partition, std::vector<unsigned> columns, unsigned leaf);
    std::unique_ptr<Trigger> finish();

private:
    Delta& origin(unsigned number);
    void define(unsigned number, unsigned arity, const Layout& layout);
    void use(Map* map);
    Read resolve(const ReadSpec& spec, unsigned known, unsigned added);
    void see_pending(Read& read, const ReadSpec& spec, const std::vector<unsigned>& key,
                     const std::vector<unsigned>& values);
    void fuse();
    void fuse_presence();
    void skip_consolidation();

    std::unique_ptr<Trigger> trigger_;
    std::vector<bool> defined_;
};

}  // namespace ivme
