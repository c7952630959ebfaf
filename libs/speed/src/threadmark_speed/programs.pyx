# cython: language_level=3
"""Running a program on a connection of sqlite3: the counterpart of `played` in `threadmark_sqlite.driver.connection`."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT

    PySendResult PyIter_Send(object generator, object sent, PyObject **given) except PYGEN_ERROR
    bint Py_IS_TYPE(object found, type expected)


def played(connection, program, type query, type direct, execute, again):
    """Answer everything that a program asks until it returns. Errors are thrown into it.

    A step of the type `query` is a statement and its parameters. One of the type `direct` is a function, and what to
    give it after two methods of a cursor. Every other step is left to `execute`, and what failed to `again`, which is
    given the error.
    """
    try:
        return answered(connection, program, query, direct, execute, again)
    except:
        program.close()
        raise


cdef object answered(object connection, object program, type query, type direct, object execute, object again):
    cdef object cursor = connection.cursor()  # one for all statements
    cdef object run = cursor.execute, fetch = cursor.fetchall
    cdef object asked, rows = None, failure = None
    cdef PyObject *given = NULL
    while True:
        if failure is None:
            how = PyIter_Send(program, rows, &given)
            asked = <object>given
            Py_DECREF(asked)  # the reference that was given
            if how == PYGEN_RETURN:
                return asked
        else:
            try:
                asked = program.throw(failure)
            except StopIteration as stop:
                return stop.value
            failure = None
        try:
            try:
                if Py_IS_TYPE(asked, query):
                    run(asked[0], asked[1])
                    rows = fetch()
                elif Py_IS_TYPE(asked, direct):
                    rows = asked[0](run, fetch, asked[1])
                else:
                    rows = execute(connection, asked)
            except Exception as error:
                rows = again(connection, asked, error)
        except Exception as error:
            failure = error
