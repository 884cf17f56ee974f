// Dealing element-wise work: a grid of rows cut into cells that fit the first cache, and the cells into tasks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/shape.h"
#include "base/threads.h"

namespace softneuro {

// Waking a pool's threads and waiting for them costs about as much as working on this many floats from cache (3-4 us).
inline constexpr int64_t elements_per_task = 32768;

// Tasks worth starting for that many elements.
inline int64_t task_count(int64_t elements, int threads) {
  return std::clamp<int64_t>(elements / elements_per_task, 1, std::max(threads, 1));
}

// One axis more than a shape has, as blocked layouts split one.
inline constexpr int max_axes = Shape::max_rank + 1;

// rows x count elements at each of the outer indices.
struct Grid {
  int outer_rank = 0;
  std::array<int64_t, max_axes> outer{};
  int64_t rows = 1, count = 1;
  int64_t work = 1;  // elements touched for each, where they are not one input's

  int64_t outer_size() const {
    int64_t size = 1;
    for (int axis = 0; axis < outer_rank; ++axis) size *= outer[static_cast<size_t>(axis)];
    return size;
  }
};

struct Cell {
  int64_t outer;      // index of the outer axes taken as one
  int64_t row, rows;  // first and how many
  int64_t column, count;
};

// Calls body(cell) for cells that cover the grid, `parallel_for` tasks at once.
template <class Body>
void for_each_cell(const Grid& grid, int threads, const ParallelFor& parallel_for, const Body& body) {
  constexpr int64_t cell_elements = 4096;  // 16 KB: a quarter to a half of a first-level cache
  const int64_t outer = grid.outer_size(), total = outer * grid.rows * grid.count;
  if (total == 0) return;
  constexpr int64_t least_columns = 64;  // four of the widest vectors
  const int64_t budget = cell_elements / std::max<int64_t>(grid.work, 1);
  const int64_t columns = std::min(grid.count, std::max(budget / least_columns, int64_t{1}) * least_columns);
  const int64_t rows = std::clamp<int64_t>(budget / grid.count, 1, grid.rows);
  const int64_t across = (grid.count + columns - 1) / columns, down = (grid.rows + rows - 1) / rows;
  const int64_t cells = outer * down * across,
                tasks = std::min(cells, task_count(total * std::max<int64_t>(grid.work, 1), threads));
  parallel_for(tasks, [&](int64_t task) {
    const Range part = split_range(cells, tasks, task);
    for (int64_t i = part.begin; i < part.end; ++i) {
      const int64_t row = i / across % down * rows, column = i % across * columns;
      body(Cell{i / across / down, row, std::min(rows, grid.rows - row), column,
                std::min(columns, grid.count - column)});
    }
  });
}

}  // namespace softneuro
